import{a as ks,b as ys}from"./part-OBPY6DKI.js";import{a as cs}from"./part-2QB5EHWO.js";import{b as as}from"./part-3WIGLMFF.js";import{a as P,b as us,c as ds,d as ps,e as $s,f as H,g as ms,h as fs,i as hs,l as gs,m as bs,n as vs}from"./part-SITSIPQX.js";import{d as Z}from"./part-UETGQ455.js";import"./part-4GHKFCSA.js";import"./part-WHWQRZZE.js";import{a as w,h as L}from"./part-KE4UJXNC.js";import{$ as K,C as y,D as ns,E as is,F as x,G as d,U as _,aa as os,ba as ls,c as E,d as I,f as C,ia as U,j as O,ja as rs,k as R,l as X,m as F,n as m,p as t,q as B,s as ss,u as j,v as S,w as es,x as ts,y as g,z as J}from"./part-B3IAOSXE.js";var Ns=120,qs=40;function Ds(s){let[e,n]=E({session:""});return I(()=>{if(!s)return;let o=new AbortController,i=r=>o.signal.aborted||n(a=>({...a.session===s?a:{session:s},...r})),c=(r,a)=>_(r,a,{signal:o.signal}),u=setTimeout(async()=>{let r=a=>a.catch(f=>f.name==="AbortError"?null:i({problem:f}));await Promise.all([r(c("session_page",{session:s}).then(a=>i({page:a}))),r(c("transcript_outline",{session:s,strip:160}).then(a=>i({outline:a}))),r(c("transcript",{session:s,start:-qs,count:qs}).then(({rows:a})=>i({last:a.findLast(f=>f.kind==="answer"&&f.text.trim())||null})))])},Ns);return()=>(clearTimeout(u),o.abort())},[s]),e}function js({session:s}){let{page:e,outline:n,last:o,problem:i,session:c}=Ds(s);if(!s)return t`<aside class="preview side" aria-label="The chosen session"></aside>`;if(!e||c!==s)return t`<aside class="preview side" aria-label="The chosen session" aria-busy=${i&&c===s?"false":"true"}><section>${i&&c===s?t`<p class="dim">${i.message}</p>`:null}</section></aside>`;let u=e.started&&e.ended?(new Date(e.ended)-new Date(e.started))/1e3:null,r=Object.keys(e.figures?.models||{}).filter(Boolean).map(is);return t`<aside class="preview side" aria-label="The chosen session">
    <section>
      <h2 class="preview-title cut2" title=${d(e.title)}><a href=${m(e.session)}>${d(e.title||e.short)}</a></h2>
      <p class="dim sm">${[e.project&&d(x(e.project)),e.started&&`${j(e.started)}, ${S(e.started)}${e.ended?` to ${j(e.ended)===j(e.started)?"":j(e.ended)+" "}${S(e.ended)}`:""}`,d(r.slice(0,2).join(", "))].filter(Boolean).join(" \xB7 ")}</p>
      ${n?.strip?t`<div class="preview-strip"><${H} letters=${n.strip} most=${80} /></div><${Ps} strip=${n.strip} />`:null}
      <div class="row preview-actions">${e.resumable?t`<${us} key=${e.session} session=${e.session} primary />`:null}<a class="button" href=${m(e.session)}>Open <kbd>↵</kbd></a><a class="button" href=${m(e.session,{view:"commits"})}><${w} name="branch" />Commits</a></div>
    </section>
    <${Rs} page=${e} outline=${n} last=${o} />
    <section><h2>At a glance</h2><dl class="pairs">
      <dt>Program</dt><dd><${L} runtime=${e.runtime} /></dd>
      ${u?t`<dt>Took</dt><dd>${ss(u)}</dd>`:null}
      ${P(e)?t`<dt>Cost</dt><dd>${P(e)}</dd>`:null}
      <${Es} page=${e} outline=${n} />
      ${e.continues?t`<dt>Goes on from</dt><dd class="cut"><a class="link" href=${m(e.continues)}>${d(e.continues.slice(0,8))}</a></dd>`:null}
      ${e.continued_by?.length?t`<dt>Continued in</dt><dd class="cut"><a class="link" href=${m(e.continued_by[0])}>${d(e.continued_by[0].slice(0,8))}</a>${e.continued_by.length>1?` +${e.continued_by.length-1}`:""}</dd>`:null}
    </dl></section>
    <${Fs} page=${e} outline=${n} />
  </aside>`}function Es({page:s,outline:e}){let n=s.figures||{},o=e?.counts?.failures||0,i=n.tokens||{},c=(i.input||0)+(i.cache_read||0)+(i.cache_write||0),u=(s.agents||[]).slice(1);return t`
    ${n.calls?t`<dt>Calls</dt><dd>${g(n.calls)}${o?t` <span class="alert">${g(o)} failed</span>`:null}</dd>`:null}
    ${u.length?t`<dt>Agents</dt><dd class="cut"><a class="link" href=${m(s.session,{view:"agents"})}>${y(u.length,"sub-agent")}</a></dd>`:null}
    ${c?t`<dt>Tokens</dt><dd>${J(c)} in, ${J(i.output||0)} out</dd>`:null}
    ${c&&i.cache_read?t`<dt>From the cache</dt><dd>${Math.round(100*i.cache_read/c)} %</dd>`:null}
    ${n.compactions?t`<dt>Compactions</dt><dd>◆ ${g(n.compactions)}</dd>`:null}
    ${s.changed?t`<dt>Changed on the way</dt><dd class="alert"><a class="link" href=${m(s.session,{view:"flow"})}>≠ ${y(s.changed,"message")}</a></dd>`:null}
  `}function Rs({page:s,outline:e,last:n}){let o=e?.prompts?.[0];return!o&&!n?null:t`<section><h2>First and last words</h2>
    ${o?t`<blockquote class="quote you"><p class="quote-text">${d(o.text)}</p><footer class="dim xs">You${s.started?", "+S(s.started):""}</footer></blockquote>`:null}
    ${n?t`<blockquote class="quote"><p class="quote-text">${d(n.text)}</p><footer class="xs"><a class="link" href=${m(s.session,{record:n.index?`${n.id}.${n.index}`:n.id})}>${d(n.who)||"Answer"}${n.time?", "+S(n.time):""}</a></footer></blockquote>`:null}
  </section>`}function Fs({page:s,outline:e}){let n=(e?.files||[]).filter(o=>o.ops.edit||o.ops.write||o.ops.delete);return n.length?t`<section><h2>Files changed <span class="dim">${g(n.length)}</span></h2><ul class="preview-files">${n.slice(0,6).map(o=>t`<li title=${d(o.path)}><${w} name="edit" /><span class="cut">${d(x(o.path,2))}</span><span class="dim xs">×${(o.ops.edit||0)+(o.ops.write||0)+(o.ops.delete||0)}</span></li>`)}</ul>
    ${n.length>6?t`<a class="link sm" href=${m(s.session)}>${n.length-6} more</a>`:null}</section>`:null}var Ls=[["r","read"],["c","command"],["e","edit"],["a","agent"]];function Ps({strip:s}){let e=Ls.filter(([n])=>s.toLowerCase().includes(n));return t`<p class="legend dim xs" aria-hidden="true">${e.map(([,n])=>t`<span><i class=${"of-"+n}></i>${n}</span>`)}${/[RCEAO]/.test(s)?t`<span><i class="of-failed"></i>failed</span>`:null}${s.includes("|")?t`<span><i class="of-fold"></i>compaction</span>`:null}</p>`}var Is=200,Bs=180,Hs=57,Ms=22,M={errors:["\u2715","failures"],compaction:["\u25C6","compaction"],agents:["","sub-agents"],prompt:["\u25BC","prompts of yours"]},ws=[["newest","Newest"],["best","Best match"],["cost","Cost"]],Gs=s=>/(^|\s)[\p{L}\p{N}_]{3,}$/u.test(s)&&!/["]|\b(AND|OR|NOT)$/.test(s)?s+"*":s;function Js(s){let e=(s.get("has")||"").split(",").filter(o=>o in M),n=ws.some(([o])=>o===s.get("order"))?s.get("order"):"newest";return{query:Gs(s.get("q")||""),project:s.get("project")||"",runtime:s.get("runtime")||"",since:gs(s.get("since")),until:bs(s.get("until")),running:s.get("running")==="1",has:e,order:n==="best"&&!s.get("q")?"newest":n}}var Ss=s=>!!(s.query||s.project||s.runtime||s.since||s.until||s.running||s.has.length),Ks=(s,e,n)=>_(s,e,n).then(o=>({...o,asked:e}));function Se(){let{params:s}=O.value,e=Js(s),n={...e,start:0,count:Is},o=C(e.query),[i,c,u]=U("sessions_page",n,{many:Ks,wait:e.query===o.current?0:Bs});i&&(o.current=i.asked.query);let r=!!i&&JSON.stringify(i.asked)===JSON.stringify(n),a=!!(e.project||e.runtime||e.running),{query:f,since:A,until:l}=e,[$,,q]=U("sessions_page",{query:f,since:A,until:l,count:1},{skip:!a}),b=Us(i),v=C(null),T=C(null),V=C({session:"",n:-1}),h=s.get("s")||"",N=$s(1200);ds(()=>(u(),a&&q())),ps(),I(()=>void(document.title="Sessions \xB7 Harken")||(()=>document.title="Harken"),[]);let _s=rs(),W=async(p,{focus:k=!0}={})=>{let D=_s();v.current?.scrollTo(p,{onlyIfHidden:!0});let G=v.current?.get(p)||i?.rows[p]||(await _("sessions_page",{...i.asked,start:p,count:1})).rows[0];!G||!D()||(V.current={session:G.session,n:p},F({s:G.session},{replace:!0}),k&&v.current?.focusRow(p,".session-title"))},Ts=()=>{let p=V.current;if(p.session===h&&(v.current?.get(p.n)?.session??h)===h)return p.n;let k=v.current?.find(D=>D.session===h)??-1;return k>=0?k:p.session===h?p.n:-1},z=p=>i?.total?void W(Math.max(0,Math.min(i.total-1,Ts()+p))):!1;Z({next:()=>z(1),previous:()=>z(-1),first:()=>{i?.total&&W(0)},last:()=>{i?.total&&W(i.total-1)},open:()=>h?void R(m(h)):!1,filter:()=>(T.current?.focus(),void T.current?.select()),continue:()=>N?document.querySelector(".preview .button.primary")?.click():!1,close:()=>document.activeElement===T.current?void T.current.blur():h&&N?void F({s:null},{replace:!0}):Ss(e)?void R("/sessions"):!1});let Q=(a?$:i)?.facets||i?.facets;return r&&!i.total&&!Ss(e)?t`<main id="main" class="page"><h1 class="screen-reader">Sessions</h1><${fs} /></main>`:t`<main id="main" class=${B("sessions",{beside:N&&h})}>
    <h1 class="screen-reader">Sessions</h1>
    <${Ys} wanted=${e} answer=${i} field=${T} facets=${Q} />
    <${xs} facets=${Q} wanted=${e} />
    <section class="session-list" aria-label="Sessions">
      ${c&&!i?t`<${ls} problem=${c} again=${u} />`:c?t`<${Xs} problem=${c} />`:!i||!i.total&&!r?t`<${os} what="sessions" />`:i.total?t`<${Vs} />
                  <${as}
                    handle=${v}
                    source=${JSON.stringify(i.asked)}
                    total=${i.total}
                    version=${b}
                    label="Sessions"
                    itemRole="listitem"
                    estimate=${Hs+(i.asked.query?Ms:0)}
                    load=${(p,k)=>p?_("sessions_page",{...i.asked,start:p,count:k}).then(D=>D.rows):Promise.resolve(i.rows)}
                    row=${(p,k)=>t`<${Qs} row=${p} chosen=${p.session===h} choose=${()=>W(k,{focus:!1})} beside=${N} />`}
                  />`:t`<${Zs} wanted=${e} all=${$} />`}
    </section>
    ${N?t`<${js} session=${h||i?.rows[0]?.session||""} />`:null}
  </main>`}function Us(s){let e=C({answer:null,version:0});return e.current.answer!==s&&(e.current={answer:s,version:e.current.version+1}),e.current.version}function Ys({wanted:s,answer:e,field:n,facets:o}){let{params:i}=O.value,[c,u]=cs("q",{along:{s:null}}),[r,a]=E(!1),f=l=>{l.key!=="Enter"&&l.key!=="ArrowDown"||(l.preventDefault(),document.querySelector(".session-list .session-title")?.focus())},A=e?[y(e.total,"session"),e.places?(e.more_places?"over ":"")+y(e.places,"place"):"",!e.places&&e.price_usd_micros?ts(e.price_usd_micros):""].filter(Boolean).join(", "):"";return t`<div class="session-tools">
    <div class="field session-field">
      <${w} name="search" />
      <input type="text" ref=${n} aria-label="Filter sessions by words in them" placeholder="Words that were said, run or read" value=${c} onInput=${l=>u(l.target.value)} onKeyDown=${f} spellcheck="false" />
      <${Os} params=${i} />
      <span class="dim sm session-told" role="status">${A}</span>
      <kbd class="key-hint">/</kbd>
    </div>
    <div class="segments" role="group" aria-label="Order">${ws.map(([l,$])=>t`<button aria-pressed=${s.order===l?"true":"false"} disabled=${l==="best"&&!s.query} onClick=${()=>F({order:l==="newest"?null:l},{replace:!0})}>${$}</button>`)}</div>
    <button class="button filters-button" aria-expanded=${r?"true":"false"} aria-controls="filters" onClick=${()=>a(!r)}><${w} name="list" />Filters</button>
    ${r?t`<div class="filters-sheet"><${xs} facets=${o} wanted=${s} id="filters" /></div>`:null}
  </div>`}function As(s){let e=[],n=vs(s.get("since"),s.get("until"));n&&e.push(["when",n,{since:null,until:null}]),s.get("running")==="1"&&e.push(["","running",{running:null}]),s.get("project")&&e.push(["project",x(s.get("project")),{project:null}]),s.get("runtime")&&e.push(["",ns(s.get("runtime")),{runtime:null}]);for(let o of(s.get("has")||"").split(",").filter(i=>i in M))e.push(["has",M[o][1],{has:Cs(s,o)}]);return e}var Cs=(s,e)=>(s.get("has")||"").split(",").filter(n=>n&&n!==e).join(",")||null,Os=({params:s})=>As(s).map(([e,n,o])=>t`<button class="chip" aria-label=${`Take the filter ${e} ${d(n)} away`} onClick=${()=>F({...o,s:null})}>${e?t`<span class="dim">${e}</span> `:null}<span class="cut">${d(n)}</span><${w} name="close" /></button>`),Y=5;function xs({facets:s,wanted:e,id:n}){let{params:o}=O.value,[i,c]=E(!1),u=Object.entries(s?.projects||{}).filter(([l])=>l),r=i?u:u.slice(0,Y),a=(l,$,q,b,v)=>t`<li><a href=${X({...l,s:null})} aria-current=${$?"true":null} class=${B("facet",{none:b===0&&!$})}>${v}<span class="cut">${q}</span>${b===void 0?null:t`<span class="dim">${g(b)}</span>`}</a></li>`,f=o.get("since")||"",A=(o.get("has")||"").split(",").filter(Boolean);return t`<nav class="filters" aria-label="Filters" id=${n}>
    <h2>When</h2><ul>
      ${hs.slice(0,3).map(([l,$])=>a({since:l,until:null},f===l,$))}
      ${a({since:null,until:null},!f&&!o.get("until"),"All time")}
      ${s?.running||e.running?a({running:e.running?null:1},e.running,"Running now",s?.running||0,t`<i class="pulse"></i>`):null}
    </ul>
    ${u.length?t`<h2>Project</h2><ul>${r.map(([l,$])=>a({project:e.project===l?null:l},e.project===l,t`<span title=${d(l)}>${d(ms(l,u.map(([q])=>q)))}</span>`,$))}
          ${u.length>Y?t`<li><button class="facet" onClick=${()=>c(!i)}><span>${i?"fewer":`${u.length-Y} more`}</span></button></li>`:null}</ul>`:null}
    <h2>Program</h2><ul>${Object.entries(s?.runtimes||{}).map(([l,$])=>a({runtime:e.runtime===l?null:l},e.runtime===l,t`<${L} runtime=${l} />`,$))}</ul>
    <h2>Has</h2><ul>${Object.entries(M).map(([l,[$,q]])=>{let b=A.includes(l);return a({has:b?Cs(o,l):[...A,l].join(",")},b,`${$?$+" ":""}${q}`,s?s.has?.[l]??0:void 0)})}</ul>
  </nav>`}var Vs=()=>t`<div class="session-heads" aria-hidden="true"><span>Session</span><span>What it did</span><span class="number">Asked</span><span class="number">Cost</span><span class="number">Last</span></div>`;function zs(s,e=Date.now()){if(s.running)return"now";let n=j(s.active,e);if(n==="today")return S(s.active);let o=(e-new Date(s.active))/864e5;return o>0&&o<6&&n!=="yesterday"?new Date(s.active).toLocaleDateString(void 0,{weekday:"short"}):n}function Qs({row:s,chosen:e,choose:n,beside:o}){let i=m(s.session),c=r=>{r.target.closest("a,button")||getSelection()?.toString()||(o?n():R(i))},u=(s.failed||0)+(s.errors||0);return t`<div class=${B("session-row",{chosen:e})} aria-current=${e?"true":null} onClick=${c} onDblClick=${()=>R(i)}>
    <div class="session-words">
      <a class="session-title cut" href=${i} title=${d(s.title)}>${d(s.title||s.short)}</a>
      <div class="session-facts">${s.project?t`<span class="cut" title=${d(s.project)}>${d(x(s.project))}</span>`:null}<${L} runtime=${s.runtime} />${s.running?t`<span class="accent"><i class="pulse"></i> running</span>`:null}${s.agents?t`<span>${y(s.agents,"agent")}</span>`:null}${u?t`<span class="alert">${g(u)} failed</span>`:null}${s.compactions?t`<span title=${y(s.compactions,"compaction")}>◆ ${s.compactions}</span>`:null}${s.continued_by?.length?t`<span>continued</span>`:null}${s.lost?t`<span class="alert">partly lost</span>`:null}</div>
    </div>
    <div class="session-strip"><${H} letters=${s.strip} most=${34} /></div>
    <div class="session-asked number">${s.prompts===null||s.prompts===void 0?"":t`${g(s.prompts)} <span class="dim">${s.prompts===1?"prompt":"prompts"}</span>`}</div>
    <div class="session-cost number">${P(s)||t`<span class="dim">–</span>`}</div>
    <div class="session-last number dim" title=${es(s.active)}>${zs(s)}</div>
    ${s.found?.length?t`<ul class="session-places">${s.found.map(r=>t`<li><a href=${m(r.session,{record:r.record||""})}><span class="dim xs">${ks[r.role]||r.role}</span><span class="cut"><${ys} text=${r.text} spots=${r.highlights} around /></span></a></li>`)}${s.places>s.found.length?t`<li><a href=${m(s.session)+"?q="+encodeURIComponent(O.value.params.get("q")||"")}><span class="dim xs">${g(s.places-s.found.length)} more</span></a></li>`:null}</ul>`:null}
  </div>`}var Xs=({problem:s})=>t`<${K} title="That cannot be searched for"><p>${s.message}</p>${s.hint?t`<p class="dim">${s.hint}</p>`:null}<//>`;function Zs({wanted:s}){let{params:e}=O.value,n=As(e),o=s.query?`No session says \u201C${d(e.get("q"))}\u201D`:s.running&&n.length===1?"No session is running":"No session fits";return t`<${K} title=${o} actions=${t`<a class="button" href="/sessions">Clear all <kbd>Esc</kbd></a>${s.query?t`<a class="button quiet" href=${"/search?q="+encodeURIComponent(e.get("q"))}>Search everything</a>`:null}`}>
    <p>${s.query?"Fewer or other words may help. A star finds beginnings: \u201Cconnec*\u201D finds \u201Cconnection\u201D.":s.running&&n.length===1?"A session runs while something was added to it in the last two minutes.":"Take one of the filters away."}</p>
    ${n.length?t`<div class="row chips"><${Os} params=${e} /></div>`:null}
  <//>`}export{Se as Sessions};
