import{c as L}from"./part-AA3DYKWU.js";import{d as y}from"./part-CUEWGRSD.js";import{$ as k,C as x,F as p,H as d,J as v,N as u,c as $,d as h,f as w,ga as S,ha as R,ia as A,o as b,p as o,pa as O}from"./part-5E77M2NB.js";var N=400,f=new Set;function F({page:t,version:e}){let[s,n,r]=O("raw_records",{session:t.session,start:0,count:1},{key:t.session});h(()=>{e&&r()},[e]);let m=w(null),[i,T]=$(0),l=a=>{let c=Math.max(0,Math.min((s?.total||1)-1,i+a));T(c),m.current?.scrollTo(c,{onlyIfHidden:!0})};return y({next:()=>l(1),previous:()=>l(-1),first:()=>l(-1e9),last:()=>l(1e9),open:()=>document.querySelector(`.raw [data-n="${i}"] .raw-head`)?.click()}),n&&!s?o`<${A} problem=${n} again=${r} />`:s?s.total?o`<div class="raw">
    <p class="dim sm pad">As they were taken in, byte for byte: ${d(s.bytes)} in ${v(s.commits,"commit")}. <code>harken materialize ${u(t.short)} --stop root -o FILE</code> writes them.</p>
    <${L} handle=${m} source=${t.session} total=${s.total} version=${e} label="Records" estimate=${74} itemRole="listitem"
      load=${(a,c)=>k("raw_records",{session:t.session,start:a,count:c}).then(_=>_.records)}
      row=${a=>o`<${g} record=${a} chosen=${a.n===i} />`} />
  </div>`:o`<${S} title="Nothing was kept here yet"><p>The session is known, and has no commit.</p><//>`:o`<${R} what="the records" />`}function g({record:t,chosen:e}){let s=t.commit_id+t.start,[n,r]=$(f.has(s)),m=()=>{n?f.delete(s):f.add(s),r(!n)},i=n?j(t.text):t.text.slice(0,N);return o`<div class=${"raw-record"+(e?" chosen":"")}>
    <div class="raw-line"><button class="raw-head" aria-expanded=${n?"true":"false"} onClick=${m}><span class="dim xs number">${p(t.n+1)}</span><span class="xs">${x(t.time)}</span><span class="dim xs">${t.start?`from byte ${p(t.start)} of ${p(t.bytes)}`:d(t.bytes)}</span></button><a class="id" href=${b(t.commit)}>${t.commit}</a></div>
    ${t.problem?o`<p class="alert sm">${u(t.problem)}</p>`:o`<pre>${u(i)}${!n&&t.text.length>N?"\u2026":""}</pre>`}
  </div>`}function j(t){return t.split(`
`).map(e=>{try{let s=JSON.parse(e);return s&&typeof s=="object"?JSON.stringify(s,null,2):e}catch{return e}}).join(`
`)}export{F as Raw};
