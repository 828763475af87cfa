import type { ErrorCode } from '#domain/codes.ts';
import type { LimitRule, Operation, Principal } from './operation.ts';

/** Codes with which an operation may refuse a limited credential. */
export const limitCodesOf = (rule: LimitRule): readonly ErrorCode[] =>
  rule === 'refused' || rule === 'owned' ? ['client_limited'] : [];

/** As a filter of a list: nothing for a credential without a limit. */
export const withinLimit = ({ clientIds }: Pick<Principal, 'clientIds'>): { readonly clientIds?: readonly string[] } =>
  clientIds === null ? {} : { clientIds };

/** The rules of all operations, as the contract says them. */
export const limitWords = (operations: readonly Pick<Operation, 'id' | 'limited'>[]): string => {
  const listed = (rule: LimitRule): string =>
    operations.flatMap(({ id, limited }) => (limited === rule ? [`\`${id}\``] : [])).join(', ');
  return [
    '**Limited to clients.** An API key may be limited to clients of the workspace. For such a key an id of another client, or of anything that belongs to one, is an unknown id: 404 in a path, `unknown_id` in a body, no row in a list. A post is shown where its client and all clients whose accounts it goes to are among those of the key; a target where its client and that of its post are. Media that belong to no client can be seen and used in posts; a campaign of no client is unknown to such a key.',
    `Lists have only the rows of these clients: ${listed('filtered')}. For a key of several clients, name one in \`clientId\`: ${listed('one')}. An asset must belong to one of the clients, so \`clientId\` is required where it is made, and an asset of the whole workspace is refused with \`client_limited\`: ${listed('owned')}. So it is, too, for: ${listed('made')}.`,
    `What concerns the whole workspace is refused with \`client_limited\`: ${listed('refused')}.`,
  ].join('\n\n');
};
