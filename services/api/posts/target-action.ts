import { type TargetCommand, target } from '#domain/target.ts';
import type { Call, One } from '../operation.ts';
import { answerTarget } from './answers.ts';
import { type LoadedTarget, loadTarget } from './load.ts';

/** One action on one target. Its post is fanned out first, so that If-Match and the rules meet a stream. */
export const actOnTarget = async <Decided>(
  call: Call<{ readonly id: string }>,
  action: {
    readonly accept?: (loaded: LoadedTarget) => Decided;
    readonly command: (decided: Decided, commandId: string) => TargetCommand;
    readonly optional: boolean;
  },
): Promise<One<unknown>> => {
  let found: LoadedTarget | undefined;
  const load = async (): Promise<LoadedTarget> => {
    found = await loadTarget(call, call.params.id);
    return found;
  };
  const { accept } = action;
  const { events, revision, replayed } = await call.stream(target).act({
    load: async () => (await load()).target,
    guard: call.guard,
    ...(accept === undefined ? {} : { accept: async () => accept(found ?? (await load())) }),
    command: (decided: Decided, { commandId }) => action.command(decided, commandId),
    optional: action.optional,
    partitionKey: (state) => (state.status === 'none' ? '' : state.common.postId),
  });
  const { post } = found ?? (await load());
  return { data: answerTarget(events, post.events), revision, replayed };
};
