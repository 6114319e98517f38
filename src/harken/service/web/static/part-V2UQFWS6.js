import{a,b,c}from"./part-6MBD6NM4.js";import"./part-M47LJOCQ.js";import"./part-PGB2WQWU.js";import"./part-7PKHX6GQ.js";export{a as Continue,b as Fidelities,c as spelled};
