import {
  accountDays,
  type InsightsAccount,
  type InsightsSource,
  type PostInsightsAnswer,
} from '#contracts/ports/platform-insights.ts';
import type { NetworkAnswer, OkAnswer } from '../kit/errors.ts';
import { byBatch, gathered, isLeftOut, type NoFigures, observedAt, withoutFigures } from '../kit/figures.ts';
import type { Bound } from '../kit/network.ts';
import { instantOf, listIn, type Members, membersOf, numberIn, textIn } from '../shared/members.ts';
import { enc, isOrganization, reading } from './tables.ts';

/**
 * Figures of an organization by the batch, those of a member one metric a call: learn.microsoft.com/linkedin, "Organization
 * Share Statistics", "Member Post Statistics", "Video Analytics", "Page Statistics".
 */

/** Of a longer list a page would show ten. */
const perCall = 10;
const dayMs = 86_400_000;

const postMetrics = [
  ...['IMPRESSION', 'MEMBERS_REACHED', 'REACTION', 'COMMENT', 'RESHARE', 'POST_SAVE', 'LINK_CLICKS'],
  ...['FOLLOWER_GAINED_FROM_CONTENT', 'PROFILE_VIEW_FROM_CONTENT'],
];
const videoMetrics = ['VIDEO_PLAY', 'VIDEO_WATCH_TIME'];

/** Calls for an account. */
const askingOf = (bound: Bound, account: InsightsAccount, signal: AbortSignal) => ({
  ...{ bound, account },
  get: async (...asked: Parameters<typeof reading>): Promise<NetworkAnswer> => {
    const ask = { ...reading(...asked), isOptional: true } as const;
    const answer = await bound.client.call({ accountId: account.id, targetId: null }, ask, signal);
    signal.throwIfAborted();
    return answer;
  },
});

type Asking = ReturnType<typeof askingOf>;

/** The answer about each post; one that is not there cannot be read. */
type Batch = ReadonlyMap<string, PostInsightsAnswer>;

type Figures = (asking: Asking, ids: readonly string[], hasVideo: boolean) => Promise<Batch | NoFigures>;

const seenAt = (answers: ReadonlyMap<string, OkAnswer>, { clock }: Bound): string =>
  observedAt([...answers.values()].at(-1)?.headers ?? {}, clock());

/** A post is named by its kind: `shares`, `ugcPosts`. */
const isShare = (id: string): boolean => id.startsWith('urn:li:share:');

/** The posts themselves, so that one that LinkedIn no longer has is seen, and their figures. All are of one kind. */
const ofOrganization: Figures = async ({ bound, account, get }, ids, hasVideo) => {
  const list = `List(${ids.map(enc).join(',')})`;
  const entity = `organizationalEntity=${enc(account.externalId)}&${isShare(ids[0] ?? '') ? 'shares' : 'ugcPosts'}=${list}`;
  const posts = await get(`/posts?ids=${list}`, 'BATCH_GET');
  if (posts.kind !== 'ok') return withoutFigures(posts, bound.clock());
  const path = `/organizationalEntityShareStatistics?q=organizationalEntity&${entity}`;
  const statistics = await get(path, 'FINDER');
  if (statistics.kind !== 'ok') return withoutFigures(statistics, bound.clock());
  const videos = hasVideo ? ids.flatMap((id) => ['VIDEO_VIEW', 'TIME_WATCHED'].map((type) => ({ id, type }))) : [];
  const more = await gathered({
    social: () => get(`/socialMetadata?ids=${list}`, 'BATCH_GET'),
    ...Object.fromEntries(
      videos.map(({ id, type }) => {
        const query = `q=entity&entity=${enc(id)}&type=${type}&aggregation=ALL`;
        return [`${id} ${type}`, () => get(`/videoAnalytics?${query}`, 'FINDER')];
      }),
    ),
  });
  if ('kind' in more && !isLeftOut(more)) return withoutFigures(more, bound.clock());
  const answers: ReadonlyMap<string, OkAnswer> = 'kind' in more ? new Map() : more;
  const at = { observedAt: observedAt(statistics.headers, bound.clock()) };
  const rawOf = (id: string): Members => {
    const isOwn = (one: Members) => (textIn(one, 'share') ?? textIn(one, 'ugcPost')) === id;
    const social = membersOf(answers.get('social')?.body.results)?.[id];
    const own = [...answers].filter(([name]) => name.startsWith(`${id} `));
    const analytics = Object.fromEntries(own.map(([name, { body }]) => [name.slice(id.length + 1), body]));
    return {
      organizationalEntityShareStatistics: { elements: listIn(statistics.body, 'elements').filter(isOwn) },
      ...(social === undefined ? {} : { socialMetadata: social }),
      ...(own.length === 0 ? {} : { videoAnalytics: analytics }),
    };
  };
  const found = new Map<string, PostInsightsAnswer>();
  for (const id of ids) {
    const shown = membersOf(membersOf(posts.body.results)?.[id]);
    const author = textIn(shown, 'author');
    if (shown !== null) found.set(id, { kind: 'reported', raw: rawOf(id), ...at });
    // One that is asked for apart and not there either is gone.
    const isMissing = numberIn(membersOf(posts.body.errors)?.[id], 'status') === 404;
    const again = isMissing ? await get(`/posts/${enc(id)}`) : null;
    const isGone = again?.kind === 'refused' && again.row.means === 'gone';
    if (isGone || (author !== null && author !== account.externalId))
      found.set(id, { kind: 'removed', raw: null, ...at });
  }
  return found;
};

/** A member's posts are not readable, so one that is gone is not told from one without figures. */
const ofMember: Figures = async ({ bound, get }, [id = ''], hasVideo) => {
  const entity = `q=entity&entity=(${isShare(id) ? 'share' : 'ugc'}:${enc(id)})&aggregation=TOTAL`;
  const metrics = {
    memberCreatorPostAnalytics: postMetrics,
    ...(hasVideo ? { memberCreatorVideoAnalytics: videoMetrics } : {}),
  };
  const calls = Object.entries(metrics).flatMap(([call, names]) =>
    names.map((name) => [name, () => get(`/${call}?${entity}&queryType=${name}`, 'FINDER')] as const),
  );
  const answers = await gathered(Object.fromEntries(calls));
  if ('kind' in answers) return withoutFigures(answers, bound.clock());
  const joined = (names: readonly string[]) => names.flatMap((name) => listIn(answers.get(name)?.body, 'elements'));
  const raw = Object.fromEntries(Object.entries(metrics).map(([call, names]) => [call, { elements: joined(names) }]));
  return new Map([[id, { kind: 'reported', raw, observedAt: seenAt(answers, bound) }]]);
};

export const postFigures =
  (bound: Bound): InsightsSource['fetchPostInsights'] =>
  (_platform, account, posts, signal) => {
    const asking = askingOf(bound, account, signal);
    const isOfOrganization = isOrganization(account.externalId);
    return byBatch<Batch>(
      posts,
      {
        perCall: isOfOrganization ? perCall : 1,
        group: ({ externalId, hasVideo }) => `${isShare(externalId)} ${hasVideo}`,
        ask: (ids, group) => (isOfOrganization ? ofOrganization : ofMember)(asking, ids, group.endsWith(' true')),
        answer: ({ externalId }, _group, batch) =>
          batch.get(externalId) ?? { kind: 'unavailable', reason: 'LinkedIn does not show the post' },
      },
      signal,
    );
  };

/** Past days of UTC with the views of a page, the newest first. */
const daysOf = (body: Members | undefined) =>
  listIn(body, 'elements')
    .flatMap((element) => {
      const begins = instantOf(numberIn(element.timeRange, 'start'));
      const raw = { organizationPageStatistics: { elements: [element] } };
      return begins === null ? [] : [{ day: begins.slice(0, 10), raw }];
    })
    .toSorted((a, b) => b.day.localeCompare(a.day));

export const accountFigures =
  (bound: Bound): InsightsSource['fetchAccountInsights'] =>
  async (_platform, account, signal) => {
    signal.throwIfAborted();
    const { get } = askingOf(bound, account, signal);
    const urn = enc(account.externalId);
    const today = Math.floor(bound.clock() / dayMs) * dayMs;
    const range = `(timeRange:(start:${today - accountDays * dayMs},end:${today}),timeGranularityType:DAY)`;
    const ofOrganization = {
      networkSizes: () => get(`/networkSizes/${urn}?edgeType=COMPANY_FOLLOWED_BY_MEMBER`),
      organizationPageStatistics: () =>
        get(`/organizationPageStatistics?q=organization&organization=${urn}&timeIntervals=${range}`, 'FINDER'),
      organizationalEntityFollowerStatistics: () =>
        get(`/organizationalEntityFollowerStatistics?q=organizationalEntity&organizationalEntity=${urn}`, 'FINDER'),
    };
    const ofPerson = { memberFollowersCount: () => get('/memberFollowersCount?q=me', 'FINDER') };
    const answers = await gathered(isOrganization(account.externalId) ? ofOrganization : ofPerson);
    if ('kind' in answers) return withoutFigures(answers, bound.clock());
    const present = [...answers].filter(([name]) => name !== 'organizationPageStatistics');
    const raw = Object.fromEntries(present.map(([name, { body }]) => [name, body]));
    const [newest, ...earlier] = daysOf(answers.get('organizationPageStatistics')?.body);
    return {
      ...{ kind: 'reported', raw: { ...raw, ...newest?.raw }, figuresOf: newest?.day ?? null },
      observedAt: seenAt(answers, bound),
      ...(earlier.length === 0 ? {} : { earlier: earlier.slice(0, accountDays - 1) }),
    };
  };
