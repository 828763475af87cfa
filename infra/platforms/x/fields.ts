import type { NetworkCall } from '#contracts/ports/network-http.ts';
import type { Ask, NetworkClient } from '../kit/client.ts';
import type { NetworkAnswer } from '../kit/errors.ts';

/**
 * X's OpenAPI document and its guides name the parameter with the fields of posts differently: where X refuses the one, the
 * other is tried once, and what X takes is remembered.
 */

export type FieldsName = 'tweet.fields' | 'post.fields';

const otherName: Readonly<Record<FieldsName, FieldsName>> = {
  'tweet.fields': 'post.fields',
  'post.fields': 'tweet.fields',
};

/** A refusal that names the parameter: X then has read nothing. */
const refusesName = (answer: NetworkAnswer, name: FieldsName): boolean =>
  answer.kind === 'refused' && answer.status === 400 && JSON.stringify(answer.body ?? {}).includes(name);

/** A call that names fields of posts. */
export type CallFor = (
  subject: NetworkCall['subject'],
  ask: (name: FieldsName) => Ask,
  signal: AbortSignal,
) => Promise<NetworkAnswer>;

/** @param first the name that is tried first */
export const callsFor = (client: NetworkClient, first: FieldsName): CallFor => {
  let name = first;
  return async (subject, ask, signal) => {
    const tried = name;
    const answer = await client.call(subject, ask(tried), signal);
    if (!refusesName(answer, tried)) return answer;
    const other = otherName[tried];
    const second = await client.call(subject, ask(other), signal);
    if (refusesName(second, other)) return answer;
    name = other;
    return second;
  };
};
