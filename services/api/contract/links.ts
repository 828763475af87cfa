import type { TSchema } from 'typebox';
import { nounOf, type Operation } from '../call/operation.ts';
import type { ContractNode } from './components.ts';

/** Links from the ids in an answer to the operations that take them, so that a reader or a test can walk the api. */

/** Resources whose id is a member of another resource, under the name of their noun in the paths. */
const foreign: Readonly<Record<string, string>> = {
  postId: 'post',
  clientId: 'client',
  accountId: 'account',
  socialAccountId: 'account',
  assetId: 'media',
  webhookId: 'webhook',
  reportId: 'report',
};

/** Answers whose id stands below another resource: each parameter of their own operations, by member. */
const nested: Readonly<Record<string, Readonly<Record<string, string>>>> = {
  webhook_delivery: { id: 'webhookId', deliveryId: 'id' },
  webhook_replay: { id: 'webhookId', replayId: 'id' },
  approval_link: { id: 'approvalId', linkId: 'linkId' },
  connect_invite: { id: 'clientId', inviteId: 'inviteId' },
  report: { id: 'id', runId: 'runs/0/runId' },
};

/** Resources whose `object` is not the noun of their paths. */
const nouns: Readonly<Record<string, string>> = {
  post_target: 'post target',
  media_deletion: 'media',
  api_key: 'API key',
  team_invite: 'team invite',
  connected_app: 'connected app',
};

const pathParameters = ({ params }: Operation): readonly string[] => Object.keys(params?.properties ?? {});
/** Later calls with the id answer 404. An archived client and a canceled replay stay readable. */
const deletes = ({ id }: Operation): boolean => id.startsWith('delete');
const takesOneId = (operation: Operation): boolean => pathParameters(operation).join() === 'id';

export const linksOf = (operation: Operation, operations: readonly Operation[]): Record<string, ContractNode> => {
  const properties: Readonly<Record<string, TSchema>> =
    (operation.answer as { readonly properties?: Record<string, TSchema> }).properties ?? {};
  const data = operation.list === true ? '$response.body#/data/0' : '$response.body#/data';
  const link = ({ id, summary }: Operation, parameters: Readonly<Record<string, string>>): [string, ContractNode] => [
    id,
    {
      operationId: id,
      description: `${summary}.`,
      parameters: Object.fromEntries(Object.entries(parameters).map(([name, at]) => [name, `${data}/${at}`])),
    },
  ];
  const object = String((properties.object as { readonly const?: string } | undefined)?.const);
  const noun = nouns[object] ?? object;
  const members = Object.entries(nested[object] ?? {});
  // A row of a list may lack the member.
  const below = members.every(([, at]) => Object.hasOwn(properties, at.split('/')[0] ?? ''))
    ? nested[object]
    : undefined;
  const others = operations.filter((one) => one !== operation);
  return Object.fromEntries([
    ...Object.entries(foreign)
      .filter(([member]) => Object.hasOwn(properties, member))
      .flatMap(([member, to]) =>
        others
          .filter((one) => one.method === 'GET' && one.list !== true && takesOneId(one) && nounOf(one) === to)
          .map((one) => link(one, { id: member })),
      ),
    ...(Object.hasOwn(properties, 'id') && !deletes(operation)
      ? others.filter((one) => takesOneId(one) && nounOf(one) === noun).map((one) => link(one, { id: 'id' }))
      : []),
    ...(below === undefined
      ? []
      : others
          .filter((one) => pathParameters(one).join() === Object.keys(below).join())
          .map((one) => link(one, below))),
  ]);
};
