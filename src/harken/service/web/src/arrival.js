// The page is sent before the answers that come with it are made (first_answers.py). Its script does not wait for them
// to be read; what is drawn waits here.

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
