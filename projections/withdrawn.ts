/**
 * SQL: whether power may have been taken that the read model of workspaces, keys and grants does not show, so that the
 * streams decide. It is so while the row of a withdrawal stands, and of a stream of which the live tables have parked or
 * skipped an event: their row shows the state before that event, however fresh the others are.
 * @param subjects SQL of the ids, by the kind of their streams
 */
export const isWithdrawnSql = (subjects: Readonly<Record<string, string>>): string => {
  const ids = Object.values(subjects).join(', ');
  const streams = Object.entries(subjects)
    .map(([kind, id]) => `'${kind}-' || ${id}`)
    .join(', ');
  const setAside = (table: string): string => `exists (
      select from ops.projections l join ops.${table} e on e.consumer_group = 'projection-' || l.name || '-v' || l.live
      where l.name = 'workspaces' and e.stream in (${streams}))`;
  return `(exists (select from auth.withdrawals t where t.subject in (${ids}))
    or ${setAside('parked_events')} or ${setAside('skipped_events')})`;
};
