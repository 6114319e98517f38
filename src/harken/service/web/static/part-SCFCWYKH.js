import{a,b,c}from"./part-23PQLZ4O.js";import"./part-WHWQRZZE.js";import"./part-BQB63H3A.js";import"./part-B3IAOSXE.js";export{a as Continue,b as Fidelities,c as spelled};
