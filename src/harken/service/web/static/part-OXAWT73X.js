import{a as K}from"./part-EHCPMCKO.js";import{B as c,E as p,I as l,K as F,O as b,Y as B,c as f,ca as q,d as O,da as C,ea as T,i as I,k as S,ka as E,l as w,m as x,o as a,p as k,t as L,v as N,w as P,z as j}from"./part-NKPV67VN.js";var R=100,V=[["","All"],["std-001","One agent"],["std-008","Several agents"]];function cs(){let{params:s}=I.value,r=s.get("kind")||"",e=s.get("d")||"",[o,i,u]=E("documents",{kind:r,start:0,count:1},{key:r}),[t,_]=f([]);O(()=>_([]),[r]);let v=async(n,d)=>{let m=[];for(let $=n;$<n+d&&$<o.total;$+=R)m.push(B("documents",{kind:r,start:$,count:Math.min(R,n+d-$)}));let g=(await Promise.all(m)).flatMap($=>$.documents);return _($=>Object.assign([...$],Object.fromEntries(g.map(M=>[M.n,M])))),g},h=n=>{let d=t.findIndex(g=>g?.session===e),m=t[Math.max(0,Math.min(t.length-1,d+n))];return m?void w({d:m.session},{replace:!0}):!1};return L({next:()=>h(1),previous:()=>h(-1),close:()=>e?void w({d:null}):!1}),a`<main id="main" class=${k("documents",{reading:e})}>
    <h1 class="screen-reader">Documents</h1>
    <section class="document-list" aria-label="Documents">
      <header><h2 aria-hidden="true">Documents</h2><div class="segments" role="group" aria-label="Kind">${V.map(([n,d])=>a`<button aria-pressed=${n===r?"true":"false"} onClick=${()=>w({kind:n})}>${d}</button>`)}</div></header>
      ${i?a`<${T} problem=${i} again=${u} />`:o?o.total?a`<${K} source=${r} total=${o.total} label="Documents, newest first" itemRole="listitem" estimate=${62} load=${v} row=${n=>a`<${G} row=${n} chosen=${n.session===e} />`} />`:a`<${q} title="There are no session documents here"><p>A session document (STD-001, STD-008) is a JSON file that tells of a whole session. <code>harken import FILE.json</code> takes one in, <code>harken std export SESSION</code> makes one of any session.</p><//>`:a`<${C} what="documents" />`}
    </section>
    ${e?a`<${Y} key=${e} session=${e} />`:o?.total?a`<div class="document-none dim"><p>Choose a document, or press <kbd>j</kbd>.</p></div>`:null}
  </main>`}var U={success:["\u2713","ok"],failed:["\u2715","alert"],in_progress:["\u2026",""]},y=({status:s})=>s?a`<span class=${"tag "+(U[s]?.[1]??"")}>${U[s]?.[0]??""} ${l(s.replaceAll("_"," "))}</span>`:null,A=({verdict:s})=>s?a`<span class=${"tag "+(/reject|fail|change/i.test(s)?"alert":/approv|pass|accept/i.test(s)?"ok":"")}>${l(s.replaceAll("_"," "))}</span>`:null;function G({row:s,chosen:r}){return a`<a class=${k("document-entry",{chosen:r})} aria-current=${r?"true":null} href=${S({d:s.session})}>
    <div class="row"><b class="cut grow">${l(s.title)||l(s.session)}</b><span class="dim xs">${P(s.time)}</span></div>
    <div class="row xs dim">${s.problem?a`<span class="alert cut">${l(s.problem)}</span>`:a`<${y} status=${s.status} /><${A} verdict=${s.verdict} /><span class="cut">${p(s.agents,"agent")} · ${p(s.calls,"call")}${s.failed_calls?a` · <span class="alert">${c(s.failed_calls)} failed</span>`:""}</span><span class="grow"></span>${s.errors?a`<span class="tag alert">${p(s.errors,"error")}</span>`:s.warnings?a`<span class="tag">${p(s.warnings,"warning")}</span>`:a`<span class="added" title="As its standard has it">valid</span>`}`}</div>
  </a>`}var D=s=>s==null?"":N(s/1e3);function Y({session:s}){let[r,e,o]=E("document",{session:s},{key:s}),[i,u]=f("");if(e)return a`<section class="document"><${T} problem=${e} again=${o} /></section>`;if(!r)return a`<section class="document"><${C} what="the document" /></section>`;let{shown:t,checked:_}=r,v=new Map(t.agents.map((n,d)=>[n.agent_id,d])),h=(n,...d)=>i?n.filter(m=>d.some(g=>m[g]===i)):n;return a`<article class="document scroll" tabindex="0" aria-label=${l(t.title)}>
    <header>
      <a class="link back" href=${S({d:null})}>All documents</a>
      <h2 class="document-title">${l(t.title)||l(s)}</h2>
      <p class="row wrap sm"><span class="tag">${t.kind.toUpperCase()} ${t.generation}</span><${y} status=${t.status} /><${A} verdict=${t.verdict} />${t.pattern?a`<span class="tag">${l(t.pattern)}</span>`:null}<span class="dim">${[j(t.created_at),D(t.duration_ms),t.model&&l(t.model),p(t.calls,"call")].filter(Boolean).join(" \xB7 ")}${t.failed_calls?a`, <span class="alert">${c(t.failed_calls)} failed</span>`:""}</span></p>
      <div class="row wrap"><a class="button" href=${x(s)}><${F} name="list" />Transcript</a><a class="button" href=${x(s,{view:"flow"})}>Flow</a></div>
      ${t.prompt?a`<blockquote class="document-prompt plain">${l(t.prompt)}</blockquote>`:null}
      ${t.mended?a`<p class="tag alert">The file is no JSON; it is shown as <code>harken std repair</code> would mend it</p>`:null}
    </header>
    <${Q} checked=${_} session=${s} />
    <section><h3>Agents <span class="dim">${c(t.agents.length)}</span></h3>
      <div class="scroll-x"><table class="document-table"><thead><tr><th>Agent</th><th>Role</th><th>Status</th><th class="number">Tasks</th><th class="number">Calls</th><th>Categories</th><th class="number">Time</th></tr></thead><tbody>
        ${t.agents.map((n,d)=>a`<tr class=${k({chosen:i===n.agent_id})}><td><button onClick=${()=>u(i===n.agent_id?"":n.agent_id)} aria-pressed=${i===n.agent_id?"true":"false"}><${b} name=${n.agent_id} order=${d} /></button></td><td class="dim">${l([n.role,n.agent_type].filter(Boolean).join(", "))}</td><td><${y} status=${n.status} /></td><td class="number">${c(n.tasks)}</td><td class="number">${c(n.calls)}${n.failed?a` <span class="alert">${c(n.failed)} failed</span>`:null}</td><td><${z} counts=${n.categories} /></td><td class="number">${D(n.duration_ms)}</td></tr>`)}
      </tbody></table></div>
      ${i?a`<p class="sm dim">Only what ${l(i)} did, said and was told. <button class="link" onClick=${()=>u("")}>Everybody</button></p>`:null}
    </section>
    <${W} tasks=${h(t.tasks,"agent_id","given_by")} order=${v} />
    <${X} messages=${h(t.messages,"from_agent","to_agent")} order=${v} />
    ${t.phases.length&&!i?a`<section><h3>Phases <span class="dim">${c(t.phases.length)}</span></h3><ol class="phases">${t.phases.map(n=>a`<li><b>${l(n.phase_type)}</b> <span class="id">${l(n.first_call)} – ${l(n.last_call)}</span> ${l(n.description)}</li>`)}</ol></section>`:null}
    ${t.left_out.length?a`<section><h3>Not drawn</h3><ul class="sm dim">${t.left_out.map(n=>a`<li>${l(n)}</li>`)}</ul></section>`:null}
  </article>`}var z=({counts:s})=>{let r=Object.entries(s).filter(([,e])=>e);return a`<span class="dim xs">${r.map(([e,o])=>`${l(e)} ${c(o)}`).join(", ")}</span>`},H={error:"\u2715",warning:"!",note:"i"};function Q({checked:s,session:r}){let[e,o]=f(!1);if(!s.findings.length)return a`<section class="findings"><p><span class="tag ok">✓ valid</span> <span class="dim sm">It is as ${s.kind.toUpperCase()} has it.</span></p></section>`;let i=e?s.findings:s.findings.slice(0,5),u=s.findings.some(t=>t.repairable);return a`<section class="findings"><h3>${[s.errors&&p(s.errors,"error"),s.warnings&&p(s.warnings,"warning"),s.notes&&p(s.notes,"note")].filter(Boolean).join(", ")}</h3>
    <ul>${i.map(t=>a`<li class=${t.level}><span class="sign" role="img" aria-label=${t.level}>${H[t.level]}</span><span><span>${l(t.message)}</span> <span class="id">${l(t.path)}</span> <span class="dim xs">${l(t.rule)}${t.repairable?", can be repaired":""}</span></span></li>`)}</ul>
    ${s.findings.length>5?a`<button class="link sm" onClick=${()=>o(!e)}>${e?"Fewer":`All ${c(s.findings.length)}`}</button>`:null}
    ${u?a`<p class="dim sm"><code>harken std repair FILE</code> mends what can be mended${s.file?a`; the file was <code>${l(s.file)}</code>`:""}.</p>`:null}
  </section>`}function W({tasks:s,order:r}){return s.length?a`<section><h3>Tasks <span class="dim">${c(s.length)}</span></h3>
    <ol class="tasks">${s.map(e=>a`<li>
      <div class="row"><${b} name=${e.agent_id} order=${r.get(e.agent_id)} /><b class="grow cut2">${l(e.description)}</b>${e.priority?a`<span class="tag">${l(e.priority)}</span>`:null}${e.review?a`<span class="tag accent">review</span>`:null}<${A} verdict=${e.verdict} /><${y} status=${e.status} /></div>
      ${e.outcome?a`<p class="cut3">${l(e.outcome)}</p>`:null}
      <p class="dim xs">${[e.task_id&&l(e.task_id),e.given_by&&`given by ${l(e.given_by)}`,p(e.calls,"call"),D(e.duration_ms)].filter(Boolean).join(" \xB7 ")}</p>
    </li>`)}</ol></section>`:null}var J=200;function X({messages:s,order:r}){let[e,o]=f(J);return s.length?a`<section><h3>Messages <span class="dim">${c(s.length)}, in order</span></h3>
    <ol class="messages">${s.slice(0,e).map(i=>a`<li>
      <div class="row"><span class="number dim xs">${i.sequence_number??""}</span><${b} name=${i.from_agent} order=${r.get(i.from_agent)} /><span class="dim" aria-label="to">→</span><${b} name=${i.to_agent} order=${r.get(i.to_agent)} /><span class="tag">${l(i.message_type.replaceAll("_"," "))}</span><${A} verdict=${i.verdict} /><span class="grow"></span><span class="dim xs" title=${l(i.message_id)}>${j(i.timestamp)}</span></div>
      ${i.said?a`<p class="plain cut6">${l(i.said)}</p>`:null}
    </li>`)}</ol>
    ${s.length>e?a`<button class="button" onClick=${()=>o(e+J)}>${c(s.length-e)} more</button>`:null}
  </section>`:null}export{cs as Documents};
