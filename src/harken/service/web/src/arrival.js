// The page is sent before the answers that come with it are made (first_answers.py). Its script does not wait for them
// to be read; what is drawn waits here.
import { afterDrawing } from "./drawing.js";

/** Resolves when all of the page is there, with what the server put into it, and its styles are: heights are measured. */
export function pageArrived() {
  return Promise.all([documentRead(), stylesRead()]);
}

function documentRead() {
  if (document.readyState !== "loading") return null;
  return new Promise((done) => addEventListener("DOMContentLoaded", done, { once: true }));
}

export function stylesRead() {
  const link = document.querySelector('link[rel="stylesheet"]');
  if (!link || link.sheet || document.readyState === "complete") return null;
  return new Promise((done) => {
    for (const event of ["load", "error"]) link.addEventListener(event, done, { once: true });
    addEventListener("load", done, { once: true }); // where it had failed before anybody listened
  });
}

const firstWords = () => document.getElementById("first-words");

/** Resolves when the words that the server put into the page can be read; at once where there are none. */
export const firstWordsDrawn = () => (firstWords() ? new Promise(afterDrawing) : null);

/** Remove them, for whoever draws something now; they may be still to come, for who went elsewhere meanwhile. */
export function endFirstWords() {
  firstWords()?.remove();
  if (document.readyState === "loading") addEventListener("DOMContentLoaded", endFirstWords, { once: true });
}
