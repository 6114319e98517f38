import{a,b,c}from"./part-S5WJ5IJP.js";import"./part-UH5O6ERI.js";import"./part-C5EXHZXX.js";import"./part-5E77M2NB.js";export{a as Continue,b as Fidelities,c as spelled};
