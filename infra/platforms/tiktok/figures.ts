import type { NetworkCall } from '#contracts/ports/network-http.ts';
import type {
  AccountInsightsAnswer,
  InsightsSource,
  InsightsSubject,
  PostInsightsAnswer,
} from '#contracts/ports/platform-insights.ts';
import type { OkAnswer } from '../kit/errors.ts';
import { type NoFigures, observedAt, withoutFigures } from '../kit/figures.ts';
import type { Bound } from '../kit/network.ts';
import { listIn, type Members, membersOf, textIn } from '../shared/members.ts';
import { statusOf } from './find.ts';
import { isPostId, posting } from './tables.ts';

/** "Query Videos", "Get User Info": four counters of a public post, and the followers now. */

const perCall = 20;
const fields = [
  ...['id', 'create_time', 'share_url', 'title', 'video_description', 'duration'],
  ...['view_count', 'like_count', 'comment_count', 'share_count'],
].join(',');

/** An answer is of one post; a text is its id. */
type Asked = string | PostInsightsAnswer;

class VideoFigures {
  readonly #bound: Bound;
  readonly #subject: NetworkCall['subject'];
  readonly #signal: AbortSignal;

  constructor(bound: Bound, accountId: string, signal: AbortSignal) {
    this.#bound = bound;
    this.#subject = { accountId, targetId: null };
    this.#signal = signal;
  }

  /** The id by which the public sees it: a post that was not public yet when it went out has only a `publish_id`. */
  async idOf({ externalId }: InsightsSubject): Promise<Asked> {
    if (isPostId(externalId)) return externalId;
    const status = await statusOf(this.#bound, this.#subject, externalId, this.#signal);
    this.#signal.throwIfAborted();
    const now = this.#bound.clock();
    const seen = new Date(now).toISOString();
    const code = status.kind === 'refused' ? status.failure.platformCode : null;
    // TikTok tells no figures of a post that the public does not see, and may forget a `publish_id`: none was asked for.
    if (status.kind === 'working' || status.kind === 'out' || code === 'invalid_publish_id') {
      return (status.kind === 'out' && status.postId) || { kind: 'reported', raw: {}, observedAt: seen, fields: [] };
    }
    const isGone = status.kind === 'ended' || code === 'token_not_authorized_for_specified_publish_id';
    return isGone ? { kind: 'removed', raw: null, observedAt: seen } : withoutFigures(status, now);
  }

  async query(ids: readonly string[]): Promise<OkAnswer | NoFigures> {
    const ask = posting('/video/query/', { filters: { video_ids: ids } }, { fields });
    const answer = await this.#bound.client.call(this.#subject, { ...ask, isOptional: true }, this.#signal);
    this.#signal.throwIfAborted();
    return answer.kind === 'ok' ? answer : withoutFigures(answer, this.#bound.clock());
  }

  answer(id: string, { body, headers }: OkAnswer): PostInsightsAnswer {
    const at = observedAt(headers, this.#bound.clock());
    const video = listIn(membersOf(body.data) ?? {}, 'videos').find((one) => textIn(one, 'id') === id);
    return video === undefined
      ? { kind: 'removed', raw: null, observedAt: at }
      : { kind: 'reported', raw: video, observedAt: at };
  }
}

export const postFigures = (bound: Bound): InsightsSource['fetchPostInsights'] =>
  async function* (_platform, { id: accountId }, posts, signal) {
    signal.throwIfAborted();
    const figures = new VideoFigures(bound, accountId, signal);
    let refused: NoFigures | null = null;
    for (let at = 0; at < posts.length; at += perCall) {
      const asked: Asked[] = [];
      for (const post of posts.slice(at, at + perCall)) {
        const one: Asked = refused ?? (await figures.idOf(post));
        // A limit holds for the posts behind it too.
        if (typeof one !== 'string' && one.kind === 'rate_limited') refused = one;
        asked.push(one);
      }
      const ids = [...new Set(asked.filter((one) => typeof one === 'string'))];
      const answer: OkAnswer | NoFigures | null = ids.length === 0 ? null : (refused ?? (await figures.query(ids)));
      if (answer?.kind === 'rate_limited') refused = answer;
      for (const one of asked) {
        if (typeof one !== 'string') yield one;
        else if (answer !== null) yield answer.kind === 'ok' ? figures.answer(one, answer) : answer;
      }
    }
  };

const profileFields = ['open_id', 'union_id', 'avatar_url', 'display_name', 'username'];

export const me = (...more: readonly string[]) =>
  ({ method: 'GET', path: '/user/info/', query: { fields: [...profileFields, ...more].join(',') } }) as const;

/** `display_name` is the nickname that TikTok wants to be shown with a post. */
export const profileOf = (user: Members) => ({
  username: textIn(user, 'username') || null,
  displayName: textIn(user, 'display_name') || null,
  avatarUrl: textIn(user, 'avatar_url') || null,
});

export const userIn = ({ body }: OkAnswer): Members => membersOf(membersOf(body.data)?.user) ?? {};

export const accountFigures =
  ({ client, clock }: Bound): InsightsSource['fetchAccountInsights'] =>
  async (_platform, { id: accountId }, signal): Promise<AccountInsightsAnswer> => {
    signal.throwIfAborted();
    const ask = { ...me('follower_count', 'following_count', 'likes_count', 'video_count'), isOptional: true } as const;
    const answer = await client.call({ accountId, targetId: null }, ask, signal);
    signal.throwIfAborted();
    if (answer.kind !== 'ok') return withoutFigures(answer, clock());
    const raw = userIn(answer);
    return {
      ...{ kind: 'reported', raw, observedAt: observedAt(answer.headers, clock()), figuresOf: null },
      ...{ fields: ['followerCount'], profile: profileOf(raw) },
    };
  };
