// Words that are typed stand in the address at once, so that whatever comes next (the back button, a link) finds them
// there. Written later, by a timer or an effect, they would come into an address that has gone on.
import { useLayoutEffect, useRef, useState } from "preact/hooks";
import { address, setParams } from "./address.js";

/** `[words, write]` of a field whose words are the parameter `name`. `heard` is told of words that others wrote there. */
export function useTyped(name, { heard = null, along = {} } = {}) {
  const written = address.value.params.get(name) || "";
  const [words, setWords] = useState(written);
  const own = useRef(written); // what this field wrote; anything else came with the back button or a link
  // Before the next key comes: an effect of the usual kind waits for the screen, and on a busy machine a person is
  // faster. The address is read anew, since it may have gone on since this was drawn.
  useLayoutEffect(() => {
    const now = address.value.params.get(name) || "";
    if (now === own.current) return;
    own.current = now;
    setWords(now);
    heard?.(now);
  }, [written]);
  const write = (text) => {
    setWords(text);
    setParams({ [name]: (own.current = text.trim()), ...along }, { replace: true });
  };
  return [words, write];
}
