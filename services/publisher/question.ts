import { within } from '#contracts/base/pause.ts';
import type { PlatformAdapter, PublishRequest, Undecided } from '#contracts/ports/platform.ts';
import type { ScheduledTarget } from '#domain/post-target/target.ts';
import { adapterOf, mediaReadiness, type WorkContext } from './context.ts';
import { noFiles } from './media-readiness.ts';
import { reportLapse } from './outcome.ts';
import type { Conditions, Content } from './related-streams.ts';
import { filesOf, requestOf } from './request.ts';

/** Milliseconds that an adapter has to answer; afterwards the answer counts as `undecided`. */
const answerLimitMs = 30_000;

export interface Question {
  readonly adapter: PlatformAdapter;
  readonly conditions: Conditions;
  readonly content: Content;
  /**
   * Puts it to the network. If the adapter fails or does not answer, the answer is `undecided`. An expired token, which
   * no answer can come with, is reported: nobody would learn of it before the next post.
   */
  readonly put: <Answer extends { readonly kind: string }>(
    to: (request: PublishRequest) => Promise<Answer | Undecided>,
  ) => Promise<Answer | Undecided>;
}

/** A question to the network of a target. Null: this installation has no adapter for it. */
export const questionOf = async (context: WorkContext, target: ScheduledTarget): Promise<Question | null> => {
  const { tools, leased } = context;
  const [conditions, content, readiness] = await Promise.all([
    context.conditions.current(target),
    context.streams.content(target),
    mediaReadiness(context, target),
  ]);
  const adapter = adapterOf(context, target, conditions);
  if (adapter === null) return null;
  const put: Question['put'] = async (to) => {
    const files = readiness.kind === 'ready' ? readiness.files : noFiles.files;
    const lent = tools.files.lend(filesOf(target, files), leased.lease.signal);
    const undecided = (): Undecided => ({ kind: 'undecided' });
    const answered = to(requestOf(target, content, conditions.account.state, lent, leased.context().workspaceId))
      .catch((error: unknown) => {
        const { targetId } = target.common;
        tools.logger.error({ err: error, targetId }, 'the adapter threw while it was asked; nothing is decided by it');
        return undecided();
      })
      .finally(lent.close);
    const answer = await within(answerLimitMs, answered, undecided);
    if (isUndecided(answer) && answer.failure !== undefined) await reportLapse(context, target, answer.failure);
    return answer;
  };
  return { adapter, conditions, content, put };
};

const isUndecided = (answer: { readonly kind: string }): answer is Undecided => answer.kind === 'undecided';
