import { BoundedMap } from '#contracts/base/bounded-map.ts';
import { within } from '#contracts/base/pause.ts';
import {
  type AccountSource,
  type AskedAccount,
  type Choice,
  type ChoicesAnswer,
  type FactsAnswer,
  maxChoices,
  type Unanswered,
} from '#contracts/ports/platform-account.ts';
import { wellFormedInstant, wellFormedText } from '#runtime/eventing/well-formed.ts';
import type { Logger } from '#runtime/process/telemetry.ts';
import type { Platform } from '#schemas/common.ts';

/**
 * Questions to networks about accounts. Networks count them, so an answer is kept for a while, and about one thing of one
 * account one question is under way at a time.
 */

/** Milliseconds for which an answer is kept: no fact is older, and a new board shows while its maker waits. */
const usualKeptMs = 60_000;
/** Milliseconds for which a network that did not answer is not asked again. */
const silentMs = 5_000;
/** Choices of all kept answers together, and kept facts. */
const [maxKeptChoices, maxKeptFacts] = [50_000, 5_000];
/** Milliseconds in which a network must answer. */
const usualAnswerMs = 8_000;
/** Longest texts of a choice, in characters: what is longer is no value of a setting, or is cut. */
const [maxValue, maxLabel] = [200, 200];
const maxReason = 300;
/** Values of one setting that an account may be said to have, and settings. */
const [maxAllowed, maxKeys] = [100, 50];

type Listed = Extract<ChoicesAnswer, { readonly kind: 'choices' }>;
type Said = Extract<FactsAnswer, { readonly kind: 'facts' }>;

const unanswered: readonly string[] = ['rate_limited', 'reauth_required', 'unavailable'] satisfies Unanswered['kind'][];
const isUnanswered = (answer: { readonly kind: string }): answer is Unanswered => unanswered.includes(answer.kind);

export interface AskedOptions {
  /** Null: this installation cannot ask the network. */
  readonly sourceOf: (network: 'live' | 'sandbox', platform: Platform) => AccountSource | null;
  /** Milliseconds since the epoch. */
  readonly clock: () => number;
  readonly logger: Pick<Logger, 'error'>;
  /** Default 60,000. */
  readonly keptMs?: number;
  /** Default 8,000. */
  readonly answerMs?: number;
  /** Runs a question in its turn, or refuses it by throwing. Default: at once. */
  readonly turn?: <Answer>(taker: Taker, ask: () => Promise<Answer>) => Promise<Answer>;
}

interface Taker {
  readonly workspaceId: string;
  readonly network: string;
}

/** An account, with the network that it is on. */
export interface Asking extends AskedAccount {
  readonly platform: Platform;
  readonly network: 'live' | 'sandbox';
}

interface Kept<Answer> {
  /** Milliseconds since the epoch. */
  readonly until: number;
  readonly answer: Answer;
}

/** Answers by what they are about. */
class Answers<Answer> {
  readonly #kept: BoundedMap<string, Kept<Answer>>;
  readonly #underWay = new Map<string, Promise<Answer>>();

  constructor(max: number, weigh: (answer: Answer) => number) {
    this.#kept = new BoundedMap(max, { weigh: ({ answer }) => weigh(answer) });
  }

  async get(
    about: string,
    clock: () => number,
    ask: () => Promise<Answer>,
    ageOf: (answer: Answer, now: number) => number,
  ): Promise<Answer> {
    const now = clock();
    const kept = this.#kept.get(about);
    if (kept !== undefined && now < kept.until) return kept.answer;
    this.#forget(now);
    const underWay = this.#underWay.get(about);
    if (underWay !== undefined) return underWay;
    const asking = ask()
      .then((answer) => {
        const answered = clock();
        this.#kept.set(about, { answer, until: answered + ageOf(answer, answered) });
        return answer;
      })
      .finally(() => this.#underWay.delete(about));
    this.#underWay.set(about, asking);
    return asking;
  }

  /** Answers that are too old, the oldest first: what names a client's boards stays no longer than somebody asks. */
  #forget(now: number): void {
    for (const [about, { until }] of this.#kept) {
      if (now < until) break;
      this.#kept.delete(about);
    }
  }
}

export class AskedAccounts {
  readonly #options: AskedOptions;
  readonly #choices = new Answers<ChoicesAnswer>(maxKeptChoices, (answer) =>
    answer.kind === 'choices' ? 1 + answer.choices.length : 1,
  );
  readonly #facts = new Answers<FactsAnswer>(maxKeptFacts, () => 1);

  constructor(options: AskedOptions) {
    this.#options = options;
  }

  /** @throws what `turn` refuses with */
  choices(account: Asking, key: string): Promise<ChoicesAnswer> {
    const ask = () =>
      this.#ask(account, async (source, signal) => {
        const answer = await source.choices(account.platform, account, key, signal);
        return answer.kind === 'choices' ? cleanChoices(answer) : answer;
      });
    return this.#choices.get(`${account.id} ${key}`, this.#options.clock, ask, (answer, now) =>
      answer.kind === 'choices' ? this.#keptMs : this.#restOf(answer, now),
    );
  }

  /** @throws what `turn` refuses with */
  facts(account: Asking): Promise<FactsAnswer> {
    const ask = () =>
      this.#ask(account, async (source, signal): Promise<FactsAnswer> => {
        const answer = await source.facts?.(account.platform, account, signal);
        if (answer === undefined) return { kind: 'unavailable', reason: 'it does not say what an account may post' };
        return answer.kind === 'facts' ? cleanFacts(answer) : answer;
      });
    return this.#facts.get(account.id, this.#options.clock, ask, (answer, now) => {
      if (answer.kind !== 'facts') return this.#restOf(answer, now);
      const { canPostNow, until } = answer.facts;
      return canPostNow || until === null ? this.#keptMs : this.#capped(Date.parse(until) - now);
    });
  }

  get #keptMs(): number {
    return this.#options.keptMs ?? usualKeptMs;
  }

  #capped(ms: number): number {
    return Math.min(Math.max(ms, 0), this.#keptMs);
  }

  #restOf(answer: Unanswered, now: number): number {
    return answer.kind === 'rate_limited' ? this.#capped(Date.parse(answer.retryAt) - now) : this.#capped(silentMs);
  }

  #cleanRefusal(answer: Unanswered): Unanswered {
    if (answer.kind !== 'rate_limited') return { ...answer, reason: wellFormedText(answer.reason, maxReason) };
    const now = new Date(this.#options.clock()).toISOString();
    return { ...answer, retryAt: wellFormedInstant(answer.retryAt) ?? now };
  }

  #ask<Answer extends { readonly kind: string }>(
    { workspaceId, network, platform }: Asking,
    ask: (source: AccountSource, signal: AbortSignal) => Promise<Answer | Unanswered>,
  ): Promise<Answer | Unanswered> {
    const { sourceOf, logger, answerMs = usualAnswerMs, turn = (_taker, work) => work() } = this.#options;
    return turn({ workspaceId, network: `${network}/${platform}` }, async (): Promise<Answer | Unanswered> => {
      const source = sourceOf(network, platform);
      if (source === null) return { kind: 'unavailable', reason: 'this installation is not set up for it' };
      const silent = (): Unanswered => ({ kind: 'unavailable', reason: 'it did not answer in time' });
      try {
        const answer = await within(answerMs, ask(source, AbortSignal.timeout(answerMs)), silent);
        return isUnanswered(answer) ? this.#cleanRefusal(answer) : answer;
      } catch (error) {
        logger.error({ err: error, platform }, 'the adapter threw while it was asked about an account');
        return { kind: 'unavailable', reason: 'its answer could not be read' };
      }
    });
  }
}

/** A network says what it likes: a value that no setting takes is left out, a long name is cut. */
const cleanChoices = ({ kind, choices, isCut }: Listed): Listed => {
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

const cleanFacts = ({ kind, facts }: Said): Said => {
  const { observedAt, allows, maxDurationMs, canPostNow, until } = facts;
  return {
    kind,
    facts: {
      ...{ observedAt, canPostNow },
      allows: Object.fromEntries(
        Object.entries(allows)
          .slice(0, maxKeys)
          .map(([key, values]) => [
            key,
            values
              .slice(0, maxAllowed)
              .map((value) => (typeof value === 'string' ? wellFormedText(value, maxValue) : value)),
          ]),
      ),
      maxDurationMs: maxDurationMs !== null && maxDurationMs > 0 ? maxDurationMs : null,
      // An instant that cannot be read is not for ever.
      until: canPostNow || until === null ? null : (wellFormedInstant(until) ?? observedAt),
    },
  };
};
