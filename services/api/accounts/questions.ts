import { BoundedMap } from '#contracts/base/bounded-map.ts';
import { within } from '#contracts/base/pause.ts';
import {
  type AccountSource,
  type AskedAccount,
  type Choice,
  type ChoicesAnswer,
  maxChoices,
} from '#contracts/ports/platform-account.ts';
import type { AccountRow } from '#projections/models/accounts.ts';
import { wellFormedText } from '#runtime/eventing/well-formed.ts';
import type { Logger } from '#runtime/process/telemetry.ts';
import { FairQueue } from '#runtime/work/fair-queue.ts';
import { type Share, Slots } from '#runtime/work/slots.ts';
import type { Platform } from '#schemas/common.ts';
import { busy } from '../call/call-queue.ts';

/**
 * Questions of callers to networks about accounts. Networks count them, so an answer is kept for a while, and about one
 * thing of one account one question is under way at a time.
 */

/** Milliseconds for which an answer is kept: short enough that a new board shows while its maker waits. */
const keptMs = 60_000;
/** Milliseconds for which a network that did not answer is not asked again. */
const silentMs = 5_000;
/** Choices of all kept answers together. */
const maxKept = 50_000;
/** Milliseconds in which a network must answer. */
const answerMs = 8_000;
/** Questions under way in this process: of all networks, of one, and there of one workspace. */
const [atOnce, ofNetwork, ofWorkspace] = [32, 8, 4];
/** How many of one workspace may wait, and how long, milliseconds. */
const line = { waiting: 50, waitMs: 5_000 };
/** Longest texts of a choice, in characters: what is longer is no value of a setting, or is cut. */
const [maxValue, maxLabel] = [200, 200];

type Listed = Extract<ChoicesAnswer, { readonly kind: 'choices' }>;
type Network = AccountRow['network'];

interface Kept {
  /** Milliseconds since the epoch. */
  readonly until: number;
  readonly answer: ChoicesAnswer;
}

export interface QuestionsOptions {
  /** Null: this installation cannot ask the network. */
  readonly sourceOf: (network: Network, platform: Platform) => AccountSource | null;
  /** Milliseconds since the epoch. */
  readonly clock: () => number;
  readonly logger: Pick<Logger, 'error'>;
  /** Default 8,000. */
  readonly answerMs?: number;
}

type Asked = Pick<
  AccountRow,
  'id' | 'workspace_id' | 'platform' | 'network' | 'external_id' | 'username' | 'checked_at'
>;

const share: Share = (taker, slots) => slots.on(taker.network ?? '') < ofNetwork && slots.ofBoth(taker) < ofWorkspace;

export class AccountQuestions {
  readonly #options: QuestionsOptions;
  readonly #kept = new BoundedMap<string, Kept>(maxKept, {
    weigh: ({ answer }) => (answer.kind === 'choices' ? 1 + answer.choices.length : 1),
  });
  readonly #underWay = new Map<string, Promise<ChoicesAnswer>>();
  readonly #queue = new FairQueue({
    slots: new Slots(atOnce, share),
    limits: { ...line, refusal: () => busy('Too many questions to this network wait. Ask again in some seconds.') },
  });

  constructor(options: QuestionsOptions) {
    this.#options = options;
  }

  /** @throws Refusal `unavailable` when too many questions wait */
  async choices(account: Asked, key: string): Promise<ChoicesAnswer> {
    // A new consent may be another person's, who has other boards.
    const about = `${account.id} ${account.checked_at} ${key}`;
    const now = this.#options.clock();
    const kept = this.#kept.get(about);
    if (kept !== undefined && now < kept.until) return kept.answer;
    this.#forget(now);
    const underWay = this.#underWay.get(about);
    if (underWay !== undefined) return underWay;
    const asking = this.#ask(account, key)
      .then((answer) => {
        this.#kept.set(about, { answer, until: this.#options.clock() + this.#ageOf(answer) });
        return answer;
      })
      .finally(() => this.#underWay.delete(about));
    this.#underWay.set(about, asking);
    return asking;
  }

  /** Answers that are too old, the oldest first: names of a client's boards stay no longer than somebody asks. */
  #forget(now: number): void {
    for (const [about, { until }] of this.#kept) {
      if (now < until) break;
      this.#kept.delete(about);
    }
  }

  #ageOf(answer: ChoicesAnswer): number {
    if (answer.kind === 'choices') return keptMs;
    if (answer.kind !== 'rate_limited') return silentMs;
    const left = Date.parse(answer.retryAt) - this.#options.clock();
    return Math.min(Math.max(left, 0), keptMs);
  }

  #ask(account: Asked, key: string): Promise<ChoicesAnswer> {
    const { workspace_id: workspaceId, network, platform } = account;
    return this.#queue.run({ workspaceId, network: `${network}/${platform}` }, async () => {
      const source = this.#options.sourceOf(network, platform);
      if (source === null) return { kind: 'unavailable', reason: 'this installation is not set up for it' };
      const { answerMs: ms = answerMs } = this.#options;
      const asked: AskedAccount = {
        ...{ workspaceId, id: account.id, externalId: account.external_id, username: account.username },
      };
      const silent = (): ChoicesAnswer => ({ kind: 'unavailable', reason: 'it did not answer in time' });
      try {
        const answer = await within(ms, source.choices(platform, asked, key, AbortSignal.timeout(ms)), silent);
        return answer.kind === 'choices' ? cleaned(answer) : answer;
      } catch (error) {
        this.#options.logger.error({ err: error, platform, key }, 'the adapter threw while it was asked of an account');
        return { kind: 'unavailable', reason: 'its answer could not be read' };
      }
    });
  }
}

/** A network says what it likes: a value that no setting takes is left out, a long name is cut. */
const cleaned = ({ kind, choices, isCut }: Listed): Listed => {
  const found = new Map<string, Choice>();
  for (const { value, label, about } of choices.slice(0, maxChoices)) {
    const whole = wellFormedText(value, maxValue + 1);
    if (whole === '' || whole !== value || whole.length > maxValue || found.has(whole)) continue;
    found.set(whole, {
      value: whole,
      label: wellFormedText(label, maxLabel) || whole,
      about: about === null ? null : wellFormedText(about, maxLabel),
    });
  }
  return { kind, choices: [...found.values()], isCut: isCut || choices.length > maxChoices };
};
