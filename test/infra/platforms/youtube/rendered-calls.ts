/** The calls that go out to YouTube for each setting and each question, as text. */

import type { NetworkCall } from '#contracts/ports/network-http.ts';
import { RecordedSteps } from '#contracts/ports/platform.suite.ts';
import type { PublishRequest } from '#contracts/ports/platform.ts';
import { type YouTubeAccount, type YouTubeWorld, youtubeWorld } from '#test/support/networks/youtube/world.ts';

const MiB = 1_024 * 1_024;

type Over = (world: YouTubeWorld) => Partial<PublishRequest>;

const cases: readonly (readonly [name: string, over: Over])[] = [
  ['a small video', () => ({})],
  ['a video in three parts', (world) => ({ media: [world.video(17 * MiB)] })],
  ['title', () => ({ overrides: { title: ' Our year ' } })],
  ['description', () => ({ overrides: { description: 'All of it' } })],
  ['privacyStatus: public', () => ({ overrides: { privacyStatus: 'public' } })],
  ['privacyStatus: unlisted', () => ({ overrides: { privacyStatus: 'unlisted' } })],
  ['privacyStatus: private', () => ({ overrides: { privacyStatus: 'private' } })],
  ['categoryId', () => ({ overrides: { categoryId: '28' } })],
  ['madeForKids: true', () => ({ overrides: { madeForKids: true } })],
  ['madeForKids: false', () => ({ overrides: { madeForKids: false } })],
  ['tags, as a list', () => ({ overrides: { tags: ['coffee', 'flat white'] } })],
  ['tags, as one text', () => ({ overrides: { tags: 'coffee, flat white,' } })],
  ['license: creativeCommon', () => ({ overrides: { license: 'creativeCommon' } })],
  ['license: youtube', () => ({ overrides: { license: 'youtube' } })],
  ['aiDisclosure', () => ({ aiDisclosure: true })],
  ['containsSyntheticMedia: true', () => ({ overrides: { containsSyntheticMedia: true } })],
  [
    'containsSyntheticMedia: false, where all others of the post say it',
    () => ({ aiDisclosure: true, overrides: { containsSyntheticMedia: false } }),
  ],
  ['firstComment', () => ({ overrides: { firstComment: 'See <https://example.com>' } })],
];

const bodyOf = ({ body }: NetworkCall): string =>
  body
    .map((one) => (Buffer.isBuffer(one) ? one.toString('utf8') : `<bytes ${one.start} to ${one.end}>`))
    .map((text) => ` ${text}`)
    .join('');

const headersOf = ({ headers }: NetworkCall): string => {
  const { authorization, accept: _, 'content-type': type, ...more } = headers;
  const said = [
    ...(authorization?.startsWith('Bearer ') === true ? [] : ['without a token']),
    ...(type === undefined || type === 'application/json' ? [] : [type]),
    ...Object.entries(more).map(([name, value]) => `${name}: ${value}`),
  ];
  return said.length === 0 ? '' : ` [${said.join(', ')}]`;
};

export const renderedCalls = async (): Promise<string> => {
  const clock = () => Date.parse('2026-11-29T12:00:00.000Z');
  const world = await youtubeWorld({}, { clock });
  const { state, origin } = world.network;
  let text = '';
  const section = async (name: string, account: YouTubeAccount, run: () => Promise<void>): Promise<void> => {
    const from = world.http.calls.length;
    await run();
    const known = new Map([
      [origin, ''],
      [account.externalId, '<channel>'],
      [account.externalId.slice(2), '<channel>'],
      ...[...state.sessions.keys()].map((key) => [key, '<session>'] as const),
      ...state.videos.map(({ id }) => [id, '<video>'] as const),
    ]);
    const named = (line: string): string => [...known].reduce((all, [id, as]) => all.replaceAll(id, as), line);
    const calls = world.http.calls.slice(from);
    text += `${name}\n${calls.map((call) => named(`  ${call.method} ${call.url}${headersOf(call)}${bodyOf(call)}\n`)).join('')}\n`;
  };
  const within = () => AbortSignal.timeout(5_000);
  const wanted = (outcome: { readonly kind: string }, kind: string): void => {
    if (outcome.kind !== kind) throw new Error(JSON.stringify(outcome));
  };
  try {
    for (const [name, over] of cases) {
      const account = await world.account();
      const asked = world.request(account, { content: 'Good morning\nand more', ...over(world) });
      await section(name, account, async () => {
        const { outcome } = await world.publish(asked);
        if (outcome.kind !== 'published') throw new Error(`${name}: ${JSON.stringify(outcome)}`);
        const { firstComment } = asked.overrides;
        if (firstComment === undefined) return;
        const { externalId } = outcome;
        const comment = { targetId: asked.targetId, platform: 'youtube', account, externalId } as const;
        wanted(await world.adapter.comment({ ...comment, content: String(firstComment) }, within()), 'posted');
      });
    }
    const account = await world.account();
    const asked = world.request(account);
    const { outcome, steps } = await world.publish(asked);
    if (outcome.kind !== 'published') throw new Error(JSON.stringify(outcome));
    const { externalId, publishedAt } = outcome;
    const follow = { targetId: asked.targetId, platform: 'youtube', account, externalId, content: '' } as const;
    await section('a cover, behind the publication', account, async () => {
      wanted(await world.adapter.afterStep({ ...follow, step: 'cover', cover: world.cover() }, within()), 'done');
    });
    await section('what became of a lost call', account, async () => {
      wanted(await world.adapter.reconcile(asked, steps.crossed), 'present');
    });
    await section('what became of a lost call whose session has ended', account, async () => {
      world.network.script({ route: 'PUT probe', then: { answer: { status: 404, body: 'Not Found' } } });
      await world.adapter.reconcile(asked, steps.crossed);
    });
    await section('categoryId, as the network lets the account choose', account, async () => {
      wanted((await world.accounts?.choices('youtube', account, 'categoryId', within())) ?? { kind: '' }, 'choices');
    });
    const dueAt = '2026-12-01T12:00:00.000Z';
    const native = { ...world.request(account), dueAt };
    let nativeId = '';
    const nativeSteps = new RecordedSteps(native, 5_000);
    await section('handed to YouTube’s own scheduler', account, async () => {
      const handed = await world.scheduler.handOver(native, nativeSteps);
      wanted(handed, 'handed_over');
      if (handed.kind === 'handed_over') nativeId = handed.nativeId;
    });
    await section('asked for', account, async () => {
      wanted(await world.scheduler.verify(native, { boundary: nativeSteps.crossed, nativeId }), 'scheduled');
    });
    await section('given another time', account, async () => {
      const later = { ...native, dueAt: '2026-12-02T12:00:00.000Z' };
      wanted(await world.scheduler.reschedule(later, nativeId), 'rescheduled');
    });
    await section('given other words', account, async () => {
      const other = { ...native, content: 'Good evening', dueAt: '2026-12-02T12:00:00.000Z' };
      wanted(await world.scheduler.revise(other, nativeId, native), 'revised');
    });
    await section('taken back', account, async () => {
      wanted(await world.scheduler.undo(native, nativeId), 'undone');
    });
    await section('figures of a video of last week, and of the channel', account, async () => {
      const post = { targetId: asked.targetId, externalId, use: 'feed', hasVideo: true } as const;
      const lastWeek = new Date(Date.parse('2026-11-22T12:00:00.000Z')).toISOString();
      for await (const one of world.source.fetchPostInsights(
        ...(['youtube', account, [{ ...post, publishedAt: lastWeek }], within()] as const),
      )) {
        wanted(one, 'reported');
      }
      wanted(await world.source.fetchAccountInsights('youtube', account, within()), 'reported');
    });
    await section('figures of a video of today', account, async () => {
      const post = { targetId: asked.targetId, externalId, use: 'feed', hasVideo: true, publishedAt } as const;
      for await (const one of world.source.fetchPostInsights(
        ...(['youtube', account, [{ ...post, publishedAt: new Date(clock()).toISOString() }], within()] as const),
      )) {
        wanted(one, 'reported');
      }
    });
    await section('removal', account, async () => {
      wanted(await world.adapter.removePost({ platform: 'youtube', account, externalId }, within()), 'removed');
    });
    return text;
  } finally {
    world.close();
  }
};
