import { target } from '#domain/post-target/target.ts';
import type { Call, One } from '../operation.ts';
import { answerTarget } from './answers.ts';
import { type LoadedTarget, loadTarget, recordOrLeave, wakeOrLeave } from './load.ts';
import { giveBackOrLeave, reserveFor } from './quota.ts';
import { requireWordForRetry } from './restore-word.ts';
import type { TargetAction } from './target-actions.ts';

/** One action on one target. Its post is fanned out first, so that If-Match and the rules meet a stream. */
export const actOnTarget = async <Decided>(
  call: Call<{ readonly id: string }>,
  { accept, command, optional, sendsOut }: TargetAction<Decided>,
): Promise<One<unknown>> => {
  let found: LoadedTarget | undefined;
  const load = async (): Promise<LoadedTarget> => {
    found = await loadTarget(call, call.params.id);
    return found;
  };
  const { state, events, revision, replayed } = await call.stream(target).act({
    load: async () => (await load()).target,
    guard: call.guard,
    accept: async () => {
      const loaded = found ?? (await load());
      return accept(loaded, call.now, sendsOut === true && (await requireWordForRetry(call, loaded)));
    },
    command: (decided: Decided, { commandId }) => command(decided, commandId),
    rule: (loaded, decided) => reserveFor(call, loaded, command(decided, call.context.commandId)),
    optional,
    partitionKey: (state) => (state.status === 'none' ? '' : state.common.postId),
  });
  const { post, target: before } = found ?? (await load());
  await recordOrLeave(call, before.state.common.postId, [{ state, events, revision }], post);
  if (sendsOut === true) await wakeOrLeave(call, [call.params.id]);
  await giveBackOrLeave(call, before.state.common.postId, [call.params.id]);
  return { data: answerTarget(events, post.events), revision, replayed };
};
