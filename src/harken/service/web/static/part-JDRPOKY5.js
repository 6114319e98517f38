import{a,b,c}from"./part-4GHKFCSA.js";import"./part-WHWQRZZE.js";import"./part-KE4UJXNC.js";import"./part-B3IAOSXE.js";export{a as Continue,b as Fidelities,c as spelled};
