import{a,b,c}from"./part-2DP2GNC3.js";import"./part-JMDYJRH5.js";import"./part-IOVDCP35.js";import"./part-5PFPZHDB.js";export{a as Continue,b as Fidelities,c as spelled};
