import{a as Ss,b as ws}from"./part-XPXAESY7.js";import{a as ps}from"./part-WJKEWOYW.js";import{c as ds}from"./part-AA3DYKWU.js";import{a as W,b as $s,c as ms,d as fs,e as hs,f as M,g as gs,h as bs,i as vs,j as ks,m as ys,n as qs,o as js}from"./part-7QN675VR.js";import{d as ss}from"./part-CUEWGRSD.js";import"./part-S5WJ5IJP.js";import"./part-UH5O6ERI.js";import{a as A,h as P}from"./part-C5EXHZXX.js";import{$ as T,A as w,B as O,C as is,E as os,F as v,G as J,J as j,K as ls,L as rs,M as _,N as d,c as R,d as I,f as C,ga as K,ha as as,ia as cs,j as x,k as D,l as Z,m as F,n as m,p as n,pa as U,q as B,qa as us,r as es,s as ts,t as ns}from"./part-5E77M2NB.js";var Ps=120,Os=40;function Ws(s){let[t,e]=R({session:""});return I(()=>{if(!s)return;let i=new AbortController,o=r=>i.signal.aborted||e(a=>({...a.session===s?a:{session:s},...r})),p=(r,a)=>T(r,a,{signal:i.signal}),c=setTimeout(async()=>{let r=a=>a.catch(f=>f.name==="AbortError"?null:o({problem:f}));await Promise.all([r(p("session_page",{session:s}).then(a=>o({page:a}))),r(p("transcript_outline",{session:s,strip:160}).then(a=>o({outline:a}))),r(p("transcript",{session:s,start:-Os,count:Os}).then(({rows:a})=>o({last:a.findLast(f=>f.kind==="answer"&&f.text.trim())||null})))])},Ps);return()=>(clearTimeout(c),i.abort())},[s]),t}function As({session:s,row:t}){let{page:e,outline:i,last:o,problem:p,session:c}=Ws(s);if(!s)return n`<aside class="preview side" aria-label="The chosen session"></aside>`;if(!e||c!==s)return n`<aside class="preview side" aria-label="The chosen session" aria-busy=${p&&c===s?"false":"true"}><section>${p&&c===s?n`<p class="dim">${p.message}</p>`:null}</section></aside>`;let r=e.started&&e.ended?(new Date(e.ended)-new Date(e.started))/1e3:null,a=Object.keys(e.figures?.models||{}).filter(Boolean).map(rs);return n`<aside class="preview side" aria-label="The chosen session">
    <section>
      <h2 class="preview-title cut2" title=${d(e.title)}><a href=${m(e.session)}>${d(e.title||e.short)}</a></h2>
      <p class="dim sm">${[e.project&&d(_(e.project)),e.started&&`${w(e.started)}, ${O(e.started)}${e.ended?` to ${w(e.ended)===w(e.started)?"":w(e.ended)+" "}${O(e.ended)}`:""}`,d(a.slice(0,2).join(", "))].filter(Boolean).join(" \xB7 ")}</p>
      ${i?.strip?n`<div class="preview-strip"><${M} letters=${i.strip} most=${80} /></div><${Hs} strip=${i.strip} />`:null}
      <div class="row preview-actions">${e.resumable?n`<${$s} key=${e.session} session=${e.session} primary />`:null}<a class="button" href=${m(e.session)}>Open <kbd>↵</kbd></a><a class="button" href=${m(e.session,{view:"commits"})}><${A} name="branch" />Commits</a></div>
    </section>
    <${Is} page=${e} outline=${i} last=${o} />
    <section><h2>At a glance</h2><dl class="pairs">
      <dt>Program</dt><dd><${P} runtime=${e.runtime} /></dd>
      ${r?n`<dt>Took</dt><dd>${ts(r)}</dd>`:null}
      ${W(e)?n`<dt>Cost</dt><dd>${W(e)}</dd>`:null}
      <${Ls} page=${e} outline=${i} row=${t} />
      ${e.continues?n`<dt>Goes on from</dt><dd class="cut"><a class="link" href=${m(e.continues)}>${d(e.continues.slice(0,8))}</a></dd>`:null}
      ${e.continued_by?.length?n`<dt>Continued in</dt><dd class="cut"><a class="link" href=${m(e.continued_by[0])}>${d(e.continued_by[0].slice(0,8))}</a>${e.continued_by.length>1?` +${e.continued_by.length-1}`:""}</dd>`:null}
    </dl></section>
    <${Bs} page=${e} outline=${i} />
  </aside>`}function Ls({page:s,outline:t,row:e}){let i=s.figures||{},o=e?.calls??(s.agents||[]).reduce((f,y)=>f+(y.calls||0),0),p=e?.failed??Math.max(0,(t?.counts?.failures||0)-(i.errors||0)),c=i.tokens||{},r=(c.input||0)+(c.cache_read||0)+(c.cache_write||0),a=(s.agents||[]).slice(1);return n`
    ${o?n`<dt>Calls</dt><dd>${v(o)}${p?n` <span class="alert">${v(p)} failed</span>`:null}</dd>`:null}
    ${a.length?n`<dt>Agents</dt><dd class="cut"><a class="link" href=${m(s.session,{view:"agents"})}>${j(a.length,"sub-agent")}</a></dd>`:null}
    ${r?n`<dt>Tokens</dt><dd>${J(r)} in, ${J(c.output||0)} out</dd>`:null}
    ${r&&c.cache_read?n`<dt>From the cache</dt><dd>${Math.round(100*c.cache_read/r)} %</dd>`:null}
    ${i.compactions?n`<dt>Compactions</dt><dd>◆ ${v(i.compactions)}</dd>`:null}
    ${s.changed?n`<dt>Changed on the way</dt><dd class="alert"><a class="link" href=${m(s.session,{view:"flow"})}>≠ ${j(s.changed,"message")}</a></dd>`:null}
  `}function Is({page:s,outline:t,last:e}){let i=t?.prompts?.[0];return!i&&!e?null:n`<section><h2>First and last words</h2>
    ${i?n`<blockquote class="quote you"><p class="quote-text">${d(i.text)}</p><footer class="dim xs">You${s.started?", "+O(s.started):""}</footer></blockquote>`:null}
    ${e?n`<blockquote class="quote"><p class="quote-text">${d(e.text)}</p><footer class="xs"><a class="link" href=${m(s.session,{record:e.index?`${e.id}.${e.index}`:e.id})}>${d(e.who)||"Answer"}${e.time?", "+O(e.time):""}</a></footer></blockquote>`:null}
  </section>`}function Bs({page:s,outline:t}){let e=(t?.files||[]).filter(i=>i.ops.edit||i.ops.write||i.ops.delete);return e.length?n`<section><h2>Files changed <span class="dim">${v(e.length)}</span></h2><ul class="preview-files">${e.slice(0,6).map(i=>n`<li title=${d(i.path)}><${A} name="edit" /><span class="cut">${d(_(i.path,2))}</span><span class="dim xs">×${(i.ops.edit||0)+(i.ops.write||0)+(i.ops.delete||0)}</span></li>`)}</ul>
    ${e.length>6?n`<a class="link sm" href=${m(s.session)}>${e.length-6} more</a>`:null}</section>`:null}var Ms=[["r","read"],["c","command"],["e","edit"],["a","agent"]];function Hs({strip:s}){let t=Ms.filter(([e])=>s.toLowerCase().includes(e));return n`<p class="legend dim xs" aria-hidden="true">${t.map(([,e])=>n`<span><i class=${"of-"+e}></i>${e}</span>`)}${/[RCEAO]/.test(s)?n`<span><i class="of-failed"></i>failed</span>`:null}${s.includes("|")?n`<span><i class="of-fold"></i>compaction</span>`:null}</p>`}var Gs=200,Js=180,Ks=57,Us=22,H={errors:["\u2715","failures"],compaction:["\u25C6","compaction"],agents:["","sub-agents"],prompt:["\u25BC","prompts of yours"]},xs=[["newest","Newest"],["best","Best match"],["cost","Cost"]],Ys=s=>/(^|\s)[\p{L}\p{N}_]{3,}$/u.test(s)&&!/["]|\b(AND|OR|NOT)$/.test(s)?s+"*":s;function Vs(s){let t=(s.get("has")||"").split(",").filter(i=>i in H),e=xs.some(([i])=>i===s.get("order"))?s.get("order"):"newest";return{query:Ys(s.get("q")||""),project:s.get("project")||"",runtime:s.get("runtime")||"",since:ys(s.get("since")),until:qs(s.get("until")),running:s.get("running")==="1",has:t,order:e==="best"&&!s.get("q")?"newest":e}}var Cs=s=>!!(s.query||s.project||s.runtime||s.since||s.until||s.running||s.has.length),zs=(s,t,e)=>T(s,t,e).then(i=>({...i,asked:t}));function Ce(){let{params:s}=x.value,t=Vs(s),e={...t,start:0,count:Gs},i=C(t.query),[o,p,c]=U("sessions_page",e,{many:zs,wait:t.query===i.current?0:Js});o&&(i.current=o.asked.query);let r=!!o&&JSON.stringify(o.asked)===JSON.stringify(e),a=!!(t.project||t.runtime||t.running),{query:f,since:y,until:l}=t,[$,,S]=U("sessions_page",{query:f,since:y,until:l,count:1},{skip:!a}),q=Qs(o),b=C(null),N=C(null),V=C({session:"",n:-1}),h=s.get("s")||"",E=hs(1200);ms(()=>(c(),a&&S())),fs(),I(()=>void(document.title="Sessions \xB7 Harken")||(()=>document.title="Harken"),[]);let Rs=us(),L=async(u,{focus:g=!0}={})=>{let k=Rs();b.current?.scrollTo(u,{onlyIfHidden:!0});let G=b.current?.get(u)||o?.rows[u]||(await T("sessions_page",{...o.asked,start:u,count:1})).rows[0];!G||!k()||(V.current={session:G.session,n:u},F({s:G.session},{replace:!0}),g&&b.current?.focusRow(u,".session-title"))},Ds=()=>{let u=V.current;if(u.session===h&&(b.current?.get(u.n)?.session??h)===h)return u.n;let g=b.current?.find(k=>k.session===h)??-1;return g>=0?g:u.session===h?u.n:-1},z=u=>o?.total?void L(Math.max(0,Math.min(o.total-1,Ds()+u))):!1;ss({next:()=>z(1),previous:()=>z(-1),first:()=>{o?.total&&L(0)},last:()=>{o?.total&&L(o.total-1)},open:()=>h?void D(m(h)):!1,filter:()=>(N.current?.focus(),void N.current?.select()),continue:()=>E?document.querySelector(".preview .button.primary")?.click():!1,close:()=>document.activeElement===N.current?void N.current.blur():h&&E?void F({s:null},{replace:!0}):Cs(t)?void D("/sessions"):!1});let Q=h||o?.rows[0]?.session||"",Fs=u=>{let g=b.current?.find(k=>k.session===u)??-1;return(g>=0?b.current.get(g):o?.rows.find(k=>k.session===u))||null},X=(a?$:o)?.facets||o?.facets;return r&&!o.total&&!Cs(t)?n`<main id="main" class="page"><h1 class="screen-reader">Sessions</h1><${bs} /></main>`:n`<main id="main" class=${B("sessions",{beside:E&&h})}>
    <h1 class="screen-reader">Sessions</h1>
    <${Xs} wanted=${t} answer=${o} field=${N} facets=${X} />
    <${Es} facets=${X} wanted=${t} />
    <section class="session-list" aria-label="Sessions">
      ${p&&!o?n`<${cs} problem=${p} again=${c} />`:p?n`<${te} problem=${p} />`:!o||!o.total&&!r?n`<${as} what="sessions" />`:o.total?n`<${Zs} />
                  <${ds}
                    handle=${b}
                    source=${JSON.stringify(o.asked)}
                    total=${o.total}
                    version=${q}
                    label="Sessions"
                    itemRole="listitem"
                    estimate=${Ks+(o.asked.query?Us:0)}
                    load=${(u,g)=>u?T("sessions_page",{...o.asked,start:u,count:g}).then(k=>k.rows):Promise.resolve(o.rows)}
                    row=${(u,g)=>n`<${ee} row=${u} chosen=${u.session===h} choose=${()=>L(g,{focus:!1})} beside=${E} />`}
                  />`:n`<${ne} wanted=${t} all=${$} />`}
    </section>
    ${E?n`<${As} session=${Q} row=${Fs(Q)} />`:null}
  </main>`}function Qs(s){let t=C({answer:null,version:0});return t.current.answer!==s&&(t.current={answer:s,version:t.current.version+1}),t.current.version}function Xs({wanted:s,answer:t,field:e,facets:i}){let{params:o}=x.value,[p,c]=ps("q",{along:{s:null}}),[r,a]=R(!1),f=l=>{l.key!=="Enter"&&l.key!=="ArrowDown"||(l.preventDefault(),document.querySelector(".session-list .session-title")?.focus())},y=t?[j(t.total,"session"),t.places?(t.more_places?"over ":"")+j(t.places,"place"):"",!t.places&&t.price_usd_micros?os(t.price_usd_micros):""].filter(Boolean).join(", "):"";return n`<div class="session-tools">
    <div class="field session-field">
      <${A} name="search" />
      <input type="text" ref=${e} aria-label="Filter sessions by words in them" placeholder="Words that were said, run or read" value=${p} onInput=${l=>c(l.target.value)} onKeyDown=${f} spellcheck="false" />
      <${Ns} params=${o} />
      <span class="dim sm session-told" role="status">${y}</span>
      <kbd class="key-hint">/</kbd>
    </div>
    <div class="segments" role="group" aria-label="Order">${xs.map(([l,$])=>n`<button aria-pressed=${s.order===l?"true":"false"} disabled=${l==="best"&&!s.query} onClick=${()=>F({order:l==="newest"?null:l},{replace:!0})}>${$}</button>`)}</div>
    <button class="button filters-button" aria-expanded=${r?"true":"false"} aria-controls="filters" onClick=${()=>a(!r)}><${A} name="list" />Filters</button>
    ${r?n`<div class="filters-sheet"><${Es} facets=${i} wanted=${s} id="filters" /></div>`:null}
  </div>`}function _s(s){let t=[],e=js(s.get("since"),s.get("until"));e&&t.push(["when",e,{since:null,until:null}]),s.get("running")==="1"&&t.push(["","running",{running:null}]),s.get("project")&&t.push(["project",_(s.get("project")),{project:null}]),s.get("runtime")&&t.push(["",ls(s.get("runtime")),{runtime:null}]);for(let i of(s.get("has")||"").split(",").filter(o=>o in H))t.push(["has",H[i][1],{has:Ts(s,i)}]);return t}var Ts=(s,t)=>(s.get("has")||"").split(",").filter(e=>e&&e!==t).join(",")||null,Ns=({params:s})=>_s(s).map(([t,e,i])=>n`<button class="chip" aria-label=${`Take the filter ${t} ${d(e)} away`} onClick=${()=>F({...i,s:null})}>${t?n`<span class="dim">${t}</span> `:null}<span class="cut">${d(e)}</span><${A} name="close" /></button>`),Y=5;function Es({facets:s,wanted:t,id:e}){let{params:i}=x.value,[o,p]=R(!1),c=Object.entries(s?.projects||{}).filter(([l])=>l),r=o?c:c.slice(0,Y),a=(l,$,S,q,b)=>n`<li><a href=${Z({...l,s:null})} aria-current=${$?"true":null} class=${B("facet",{none:q===0&&!$})}>${b}<span class="cut">${S}</span>${q===void 0?null:n`<span class="dim">${v(q)}</span>`}</a></li>`,f=i.get("since")||"",y=(i.get("has")||"").split(",").filter(Boolean);return n`<nav class="filters" aria-label="Filters" id=${e}>
    <h2>When</h2><ul>
      ${ks.slice(0,3).map(([l,$])=>a({since:l,until:null},f===l,$))}
      ${a({since:null,until:null},!f&&!i.get("until"),"All time")}
      ${s?.running||t.running?a({running:t.running?null:1},t.running,"Running now",s?.running||0,n`<i class="pulse"></i>`):null}
    </ul>
    ${c.length?n`<h2>Project</h2><ul>${r.map(([l,$])=>a({project:t.project===l?null:l},t.project===l,n`<span title=${d(l)}>${d(gs(l,c.map(([S])=>S)))}</span>`,$))}
          ${c.length>Y?n`<li><button class="facet" onClick=${()=>p(!o)}><span>${o?"fewer":`${c.length-Y} more`}</span></button></li>`:null}</ul>`:null}
    <h2>Program</h2><ul>${Object.entries(s?.runtimes||{}).map(([l,$])=>a({runtime:t.runtime===l?null:l},t.runtime===l,n`<${P} runtime=${l} />`,$))}</ul>
    <h2>Has</h2><ul>${Object.entries(H).map(([l,[$,S]])=>{let q=y.includes(l);return a({has:q?Ts(i,l):[...y,l].join(",")},q,`${$?$+" ":""}${S}`,s?s.has?.[l]??0:void 0)})}</ul>
  </nav>`}var Zs=()=>n`<div class="session-heads" aria-hidden="true"><span>Session</span><span>What it did</span><span class="number">Asked</span><span class="number">Cost</span><span class="number">Last</span></div>`;function se(s,t=Date.now()){if(s.running)return"now";let e=w(s.active,t);if(e==="today")return O(s.active);let i=(t-new Date(s.active))/vs;return i>0&&i<6&&e!=="yesterday"?ns(es(s.active)):e}function ee({row:s,chosen:t,choose:e,beside:i}){let o=m(s.session),p=r=>{r.target.closest("a,button")||getSelection()?.toString()||(i?e():D(o))},c=(s.failed||0)+(s.errors||0);return n`<div class=${B("session-row",{chosen:t})} aria-current=${t?"true":null} onClick=${p} onDblClick=${()=>D(o)}>
    <div class="session-words">
      <a class="session-title cut" href=${o} title=${d(s.title)}>${d(s.title||s.short)}</a>
      <div class="session-facts">${s.project?n`<span class="cut" title=${d(s.project)}>${d(_(s.project))}</span>`:null}<${P} runtime=${s.runtime} />${s.running?n`<span class="accent"><i class="pulse"></i> running</span>`:null}${s.agents?n`<span>${j(s.agents,"agent")}</span>`:null}${c?n`<span class="alert">${v(c)} failed</span>`:null}${s.compactions?n`<span title=${j(s.compactions,"compaction")}>◆ ${s.compactions}</span>`:null}${s.continued_by?.length?n`<span>continued</span>`:null}${s.lost?n`<span class="alert">partly lost</span>`:null}</div>
    </div>
    <div class="session-strip"><${M} letters=${s.strip} most=${34} /></div>
    <div class="session-asked number">${s.prompts===null||s.prompts===void 0?"":n`${v(s.prompts)} <span class="dim">${s.prompts===1?"prompt":"prompts"}</span>`}</div>
    <div class="session-cost number">${W(s)||n`<span class="dim">–</span>`}</div>
    <div class="session-last number dim" title=${is(s.active)}>${se(s)}</div>
    ${s.found?.length?n`<ul class="session-places">${s.found.map(r=>n`<li><a href=${m(r.session,{record:r.record||""})}><span class="dim xs">${Ss[r.role]||r.role}</span><span class="cut"><${ws} text=${r.text} spots=${r.highlights} around /></span></a></li>`)}${s.places>s.found.length?n`<li><a href=${m(s.session)+"?q="+encodeURIComponent(x.value.params.get("q")||"")}><span class="dim xs">${v(s.places-s.found.length)} more</span></a></li>`:null}</ul>`:null}
  </div>`}var te=({problem:s})=>n`<${K} title="That cannot be searched for"><p>${s.message}</p>${s.hint?n`<p class="dim">${s.hint}</p>`:null}<//>`;function ne({wanted:s}){let{params:t}=x.value,e=_s(t),i=s.query?`No session says \u201C${d(t.get("q"))}\u201D`:s.running&&e.length===1?"No session is running":"No session fits";return n`<${K} title=${i} actions=${n`<a class="button" href="/sessions">Clear all <kbd>Esc</kbd></a>${s.query?n`<a class="button quiet" href=${"/search?q="+encodeURIComponent(t.get("q"))}>Search everything</a>`:null}`}>
    <p>${s.query?"Fewer or other words may help. A star finds beginnings: \u201Cconnec*\u201D finds \u201Cconnection\u201D.":s.running&&e.length===1?"A session runs while something was added to it in the last two minutes.":"Take one of the filters away."}</p>
    ${e.length?n`<div class="row chips"><${Ns} params=${t} /></div>`:null}
  <//>`}export{Ce as Sessions};
