// What can wait until the reader sees something.
import { useLayoutEffect, useState } from "preact/hooks";

/** Call `run` when what is there now has been drawn; soon, where nobody looks and nothing is drawn. */
export function afterDrawing(run) {
  let isDone = false;
  const once = () => {
    if (isDone) return;
    isDone = true;
    run();
  };
  requestAnimationFrame(() => setTimeout(once));
  setTimeout(once, 200);
}

/** Whether something that is there has been drawn. */
export function useDrawn(isThere) {
  const [isDrawn, setDrawn] = useState(false);
  useLayoutEffect(() => void (isThere && afterDrawing(() => setDrawn(true))), [isThere]);
  return isDrawn;
}
