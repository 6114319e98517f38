import{a,b,c}from"./part-3SZJR6D5.js";import"./part-WHWQRZZE.js";import"./part-J2K4UUGS.js";import"./part-B3IAOSXE.js";export{a as Continue,b as Fidelities,c as spelled};
