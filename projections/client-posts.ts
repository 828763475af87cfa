/**
 * SQL of what a credential limited to clients may see of the read model of posts: those of its clients that go to no
 * other. Where targets are not written yet, as of a draft, the accounts that the post names count.
 * NOTE: the targets are not looked up by `not exists`: Postgres may read all of them into a hash for it. Of
 * `(select …) is null` it expects that few rows pass, and sorts all of them for a page.
 */

/**
 * Whether a post goes to accounts of these clients alone. `?`: the clients, twice.
 * @param posts alias of `read.posts`
 */
export const goesToClientsAlone = (posts: string): string =>
  `coalesce((
    select false from read.post_targets o where o.post_id = ${posts}.id and o.client_id <> all(?::uuid[]) limit 1), true)
  and ((${posts}.status <> 'draft' and not ${posts}.fan_out_behind)
    or ${posts}.body #> '{targetSelection,accountIds}' = 'null' or not exists (
      select from jsonb_array_elements_text(${posts}.body #> '{targetSelection,accountIds}') named
      join read.accounts a on a.id = named::uuid where a.client_id <> all(?::uuid[])))`;

/** The post is also of one of them. `?`: the clients, three times. */
export const ofClientsAlone = (posts: string): string =>
  `${posts}.client_id = any(?::uuid[]) and ${goesToClientsAlone(posts)}`;

/** What `goesToClientsAlone` is bound to. */
export const twice = (clientIds: readonly string[]): readonly string[][] => [[...clientIds], [...clientIds]];

/** What `ofClientsAlone` is bound to. */
export const threeTimes = (clientIds: readonly string[]): readonly string[][] => [[...clientIds], ...twice(clientIds)];
