import {
  type AccountInsightsAnswer,
  accountDays,
  type InsightsSource,
  type InsightsSubject,
  type PostInsightsAnswer,
} from '#contracts/ports/platform-insights.ts';
import type { NetworkAnswer, NotOk } from '../kit/errors.ts';
import { type NoFigures, observedAt, withoutFigures } from '../kit/figures.ts';
import type { Bound } from '../kit/network.ts';
import { type Members, membersOf, textIn } from '../shared/members.ts';

/** "Get Pin", "Get Pin analytics", "Get user account analytics": days of UTC, final after two. */

const dayMs = 86_400_000;
/** Pinterest looks back no further. */
const maxDays = 89;
const day = (ms: number): string => new Date(ms).toISOString().slice(0, 10);

const ofEach = ['IMPRESSION', 'OUTBOUND_CLICK', 'PIN_CLICK', 'SAVE', 'TOTAL_COMMENTS', 'TOTAL_REACTIONS'];
/** Pinterest takes these not beside those of videos. */
const ofPerson = ['USER_FOLLOW', 'PROFILE_VISIT'];
const ofVideo = ['VIDEO_MRC_VIEW', 'QUARTILE_95_PERCENT_VIEW', 'VIDEO_V50_WATCH_TIME', 'VIDEO_AVG_WATCH_TIME'];

type Fields = NonNullable<Extract<PostInsightsAnswer, { kind: 'reported' }>['fields']>;

/** What the pin itself tells, also where the account has no analytics. */
const fieldsOfPin: Fields = ['impressions', 'likes', 'comments', 'clicks', 'clicksByType'];
const fieldsOfAnalytics: Fields = [...fieldsOfPin, 'saves', 'follows', 'profileVisits'];
const fieldsOfVideo: Fields = ['videoViews', 'videoCompletions', 'watchTimeMinutes', 'avgViewDurationSeconds'];

/** Analytics are refused: Pinterest tells them of business accounts alone, and not in its sandbox. */
const isWithout = (answer: NotOk): boolean =>
  answer.kind === 'refused' && ['permission', 'invalid_content'].includes(answer.failure.category);

/** Two answers about the same pin and days as one. */
const merged = (one: Members, other: Members): Members => {
  const [all, more] = [membersOf(one.all) ?? {}, membersOf(other.all) ?? {}];
  const both = (name: string) => ({ ...membersOf(all[name]), ...membersOf(more[name]) });
  return {
    all: { ...all, summary_metrics: both('summary_metrics'), lifetime_metrics: both('lifetime_metrics') },
  };
};

class PinFigures {
  readonly #bound: Bound;
  readonly #accountId: string;
  readonly #signal: AbortSignal;

  constructor(bound: Bound, accountId: string, signal: AbortSignal) {
    this.#bound = bound;
    this.#accountId = accountId;
    this.#signal = signal;
  }

  async of(post: InsightsSubject): Promise<PostInsightsAnswer> {
    const { externalId, hasVideo } = post;
    const path = `/pins/${encodeURIComponent(externalId)}`;
    const pin = await this.#ask(path, { pin_metrics: 'true' });
    const now = this.#bound.clock();
    if (pin.kind === 'refused' && pin.row.means === 'gone') {
      return { kind: 'removed', raw: pin.body, observedAt: observedAt(pin.headers, now) };
    }
    if (pin.kind !== 'ok') return withoutFigures(pin, now);
    const at = observedAt(pin.headers, now);
    if (pin.body.is_owner === false) return { kind: 'removed', raw: null, observedAt: at };
    const analytics = await this.#analytics(path, post, now);
    if (analytics === null) return { kind: 'reported', raw: { pin: pin.body }, observedAt: at, fields: fieldsOfPin };
    if (analytics.kind !== 'analytics') return analytics;
    const fields = hasVideo ? [...fieldsOfAnalytics, ...fieldsOfVideo] : fieldsOfAnalytics;
    return { kind: 'reported', raw: { analytics: analytics.body, pin: pin.body }, observedAt: at, fields };
  }

  async #ask(path: string, query: Readonly<Record<string, string>>): Promise<NetworkAnswer> {
    const subject = { accountId: this.#accountId, targetId: null };
    const answer = await this.#bound.client.call(
      subject,
      { method: 'GET', path, query, isOptional: true },
      this.#signal,
    );
    this.#signal.throwIfAborted();
    return answer;
  }

  /** Null: there are none. */
  async #analytics(
    path: string,
    { publishedAt, hasVideo }: InsightsSubject,
    now: number,
  ): Promise<{ readonly kind: 'analytics'; readonly body: Members } | NoFigures | null> {
    const from = Math.max(Date.parse(publishedAt), now - maxDays * dayMs);
    let body: Members = {};
    for (const metrics of hasVideo ? [[...ofEach, ...ofVideo], ofPerson] : [[...ofEach, ...ofPerson]]) {
      const query = { start_date: day(from), end_date: day(now), metric_types: metrics.join(',') };
      const answer = await this.#ask(`${path}/analytics`, query);
      if (answer.kind !== 'ok') return isWithout(answer) ? null : withoutFigures(answer, now);
      body = merged(body, answer.body);
    }
    return { kind: 'analytics', body };
  }
}

export const postFigures = (bound: Bound): InsightsSource['fetchPostInsights'] =>
  async function* (_platform, { id }, posts, signal) {
    signal.throwIfAborted();
    const figures = new PinFigures(bound, id, signal);
    let refused: PostInsightsAnswer | null = null;
    for (const post of posts) {
      // A limit holds for the posts behind it too.
      const answer: PostInsightsAnswer = refused ?? (await figures.of(post));
      if (answer.kind === 'rate_limited') refused = answer;
      yield answer;
    }
  };

export const me = { method: 'GET', path: '/user_account' } as const;

/** What a person sees of the account. */
export const profileOf = (account: Members) => ({
  username: textIn(account, 'username') || null,
  displayName: textIn(account, 'business_name') || null,
  avatarUrl: textIn(account, 'profile_image') || null,
});

export const accountFigures =
  ({ client, clock }: Bound): InsightsSource['fetchAccountInsights'] =>
  async (_platform, { id: accountId }, signal): Promise<AccountInsightsAnswer> => {
    signal.throwIfAborted();
    const subject = { accountId, targetId: null };
    const shown = await client.call(subject, { ...me, isOptional: true }, signal);
    signal.throwIfAborted();
    const now = clock();
    if (shown.kind !== 'ok') return withoutFigures(shown, now);
    const days: { readonly day: string; readonly raw: { readonly analytics: Members } }[] = [];
    for (let ago = 1; ago <= accountDays; ago += 1) {
      const of = day(now - ago * dayMs);
      // Without `metric_types`: only so Pinterest tells visits of the profile and figures of videos. One day a call, since
      // the sum of the days asked for has more than each day.
      const query = { start_date: of, end_date: of };
      const ask = { method: 'GET', path: '/user_account/analytics', query, isOptional: true } as const;
      const answer = await client.call(subject, ask, signal);
      signal.throwIfAborted();
      if (answer.kind !== 'ok' && ago === 1 && !isWithout(answer)) return withoutFigures(answer, now);
      if (answer.kind !== 'ok') break;
      days.push({ day: of, raw: { analytics: answer.body } });
    }
    const [newest, ...earlier] = days;
    const reported = { observedAt: observedAt(shown.headers, now), profile: profileOf(shown.body) };
    const raw = { user_account: shown.body, ...newest?.raw };
    if (newest === undefined) return { kind: 'reported', raw, figuresOf: null, fields: ['followerCount'], ...reported };
    return { kind: 'reported', raw, figuresOf: newest.day, earlier, ...reported };
  };
