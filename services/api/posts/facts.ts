import { within } from '#contracts/base/pause.ts';
import type { FactsAnswer } from '#contracts/ports/platform-account.ts';
import { Rejection } from '#domain/decider.ts';
import { rulesOf } from '#domain/platforms/index.ts';
import type { PostAssets } from '#domain/post/compose.ts';
import { accountWarnings, factsWarnings, type PreviewWarning, unaskedWarnings } from '#domain/post/preview.ts';
import type { Destination } from '#domain/post/scheduling.ts';
import { inParallel } from '#runtime/work/in-parallel.ts';
import type { PostBody } from '#schemas/post.ts';
import type { SelectedAccount } from '#services/workflows/posts/accounts.ts';
import type { Call } from '../call/operation.ts';

/** What networks that want to be asked first say of the accounts of a post, for its preview. */

/** Accounts of one preview that networks are asked about. */
const maxAsked = 20;
/** Those at once, so that a preview leaves turns to others of its workspace. */
const atOnce = 2;
/** Milliseconds after which a preview is answered without those that have not said anything. */
const patienceMs = 6_000;

type Asking = Pick<Call, 'deps' | 'workspaceId'>;
type Answers = ReadonlyMap<string, FactsAnswer>;

const asksFirst = ({ platform, status }: SelectedAccount): boolean =>
  rulesOf(platform).asksFirst === true && status === 'connected';

/** What was said in time, by the id of the account. */
export const askFirst = async (
  { deps, workspaceId }: Asking,
  accounts: readonly SelectedAccount[],
): Promise<Answers> => {
  const answers = new Map<string, FactsAnswer>();
  const until = performance.now() + patienceMs;
  const asked = inParallel(accounts.filter(asksFirst).slice(0, maxAsked), atOnce, async (account) => {
    if (performance.now() > until) return;
    try {
      answers.set(account.id, await deps.asked.facts({ ...account, workspaceId }));
    } catch (error) {
      // Too many questions wait: the preview says that nothing is known.
      if (!(error instanceof Rejection)) throw error;
    }
  });
  await within(patienceMs, asked, () => undefined);
  return new Map(answers);
};

/** What the author should know of one target. @param goesAt when it goes out */
export const askedWarnings = (
  {
    body,
    destination,
    assets,
  }: { readonly body: PostBody; readonly destination: Destination; readonly assets: PostAssets },
  account: SelectedAccount | undefined,
  answers: Answers,
  goesAt: string,
): readonly PreviewWarning[] => {
  if (account === undefined || !asksFirst(account)) return [];
  const answer = answers.get(account.id);
  if (answer?.kind === 'facts') return factsWarnings(body, destination, assets, answer.facts, goesAt);
  return answer?.kind === 'reauth_required' ? accountWarnings(answer.kind) : unaskedWarnings(account.platform);
};
