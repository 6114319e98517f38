import{a,b,c}from"./part-6SATQHU5.js";import"./part-LHL4UU4N.js";import"./part-FS4KPCAP.js";import"./part-ZGYTT7J6.js";export{a as Continue,b as Fidelities,c as spelled};
