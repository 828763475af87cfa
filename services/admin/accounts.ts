import type { NetworkNotice } from '#contracts/ports/network-inbox.ts';
import { account } from '#domain/account.ts';
import { Rejection } from '#domain/decider.ts';
import { causedByNewest } from '#runtime/eventing/service-context.ts';
import { UsageError } from '#runtime/process/usage-error.ts';
import { forgetOwner } from '#services/workflows/accounts/lapse.ts';
import { contextOf } from '#services/workflows/provision.ts';
import type { Admin, CommandOutput, Given } from './context.ts';
import { idOf } from './find.ts';

/** What a network asks for by a call, where a person asks for it, or an operator tries the way of such calls. */

const accountOf = async ({ store }: Admin, text: string) => {
  const id = idOf(text, 'account');
  const { state, events, revision } = await store.load(account, id);
  if (state.status === 'none') throw new Rejection('not_found', 'There is no such account.');
  return { id, state, events, revision };
};

/** The networks' credentials of the account are destroyed by the outcomes process, as those of every disconnected account. */
export const forgetAccount = async (admin: Admin, { at }: Given): Promise<CommandOutput> => {
  const { id, events, revision } = await accountOf(admin, at(0));
  const { workspaceId } = causedByNewest(events, events[0]?.metadata.workspaceId ?? '', id);
  const context = contextOf(admin.operator, workspaceId);
  await forgetOwner(admin.store, id, 'The owner asked to have their data deleted.', context, revision);
  return { accountId: id, profile: 'deleted', status: 'disconnected' };
};

const kinds: readonly NetworkNotice['kind'][] = ['deauthorized', 'delete_data', 'post_state'];

/** Milliseconds. */
const answerMs = 20_000;

export const callFromSandbox = async (admin: Admin, { at }: Given): Promise<CommandOutput> => {
  const { state } = await accountOf(admin, at(0));
  const kind = kinds.find((one) => one === at(1));
  if (kind === undefined) throw new UsageError(`<what> is one of ${kinds.join(', ')}.`);
  const { platform, network, externalId: person } = state;
  if (network !== 'sandbox') throw new UsageError('The sandbox knows its own accounts alone: those of test keys.');
  const call = admin.sandboxCall(platform, { kind, person, now: admin.operator.clock() });
  if (call === null) throw new UsageError(`${platform} makes no such call.`);
  const path = ['network', 'sandbox', platform, ...(call.topic === null ? [] : [call.topic])].join('/');
  const url = `${admin.consoleUrl}/${path}`;
  const { headers, body } = call;
  const signal = AbortSignal.any([admin.signal, AbortSignal.timeout(answerMs)]);
  const answer = await fetch(url, { method: 'POST', headers, body, redirect: 'manual', signal });
  const text = await answer.text();
  if (answer.status !== 200) throw new Error(`${url} answered ${answer.status}: ${text.slice(0, 300)}`);
  return { url, answer: text };
};
