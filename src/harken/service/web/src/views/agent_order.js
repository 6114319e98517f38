// Which colour an agent has: the same in every view of a session, by its place among the session's agents.

/** From an agent of some view (`agent`, `id` or `agent_id`, and `session` where it has one) to its place. */
export function orderOf(page, others = []) {
  const places = new Map();
  const known = page.agents || [];
  known.forEach((agent, at) => {
    places.set(agent.id, at);
    if (agent.session && agent.session !== page.session) places.set(agent.session, at);
  });
  if (known.length && known[0].parent === null) places.set("", 0);
  let next = known.length;
  const placeOf = (one) => {
    const names = typeof one === "string" ? [one] : [one.agent ?? one.id ?? one.agent_id ?? "", one.session && one.session !== page.session ? one.session : null];
    for (const name of names) if (name !== null && name !== undefined && places.has(name)) return places.get(name);
    places.set(names[0], next);
    return next++;
  };
  for (const one of others) placeOf(one);
  return placeOf;
}
