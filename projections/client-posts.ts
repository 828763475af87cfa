/**
 * SQL of what a credential limited to clients may see of the read model of posts: those of its clients that go to no
 * other. Where targets are not written yet, as of a draft, the accounts that the post names count.
 * `?`: the clients, three times.
 * @param posts alias of `read.posts`
 */
export const ofClientsAlone = (posts: string): string => `${posts}.client_id = any(?::uuid[])
  and not exists (select from read.post_targets o where o.post_id = ${posts}.id and o.client_id <> all(?::uuid[]))
  and ((${posts}.status <> 'draft' and not ${posts}.fan_out_behind)
    or ${posts}.body #> '{targetSelection,accountIds}' = 'null' or not exists (
      select from jsonb_array_elements_text(${posts}.body #> '{targetSelection,accountIds}') named
      join read.accounts a on a.id = named::uuid where a.client_id <> all(?::uuid[])))`;

/** What `ofClientsAlone` is bound to. */
export const threeTimes = (clientIds: readonly string[]): readonly string[][] =>
  Array.from({ length: 3 }, () => [...clientIds]);
