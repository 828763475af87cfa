/** The calls that go out to Facebook for each setting and each question, as text. */
import type { NetworkCall } from '#contracts/ports/network-http.ts';
import { RecordedSteps } from '#contracts/ports/platform.suite.ts';
import type { PublishRequest } from '#contracts/ports/platform.ts';
import { type FacebookAccount, type FacebookWorld, facebookWorld } from '#test/support/networks/facebook/world.ts';

const MiB = 1_024 * 1_024;

type Over = (world: FacebookWorld) => Partial<PublishRequest>;

const cases: readonly (readonly [name: string, over: Over])[] = [
  ['a text', () => ({})],
  ['a text with a link', () => ({ content: 'Read this: https://example.com/a, please' })],
  ['a photo, with its text for people who do not see it', ({ photo }) => ({ media: [photo({ altText: 'A cup' })] })],
  ['two photos', ({ photo }) => ({ media: [photo(), photo()] })],
  ['a video', ({ video }) => ({ media: [video()] })],
  ['a video in three parts, with a cover', ({ video, photo }) => ({ media: [video(2 * MiB + 5)], cover: photo() })],
  ['a vertical video', ({ reel }) => ({ media: [reel()] })],
  ['a vertical video of two minutes', ({ reel }) => ({ media: [reel(1_000, { durationMs: 120_000 })] })],
  ['contentType: feed', () => ({ overrides: { contentType: 'feed' } })],
  ['contentType: reel', ({ video }) => ({ media: [video()], overrides: { contentType: 'reel' } })],
  ['contentType: story, a video', ({ reel }) => ({ media: [reel()], overrides: { contentType: 'story' } })],
  ['contentType: story, a photo', ({ photo }) => ({ media: [photo()], overrides: { contentType: 'story' } })],
  ['aiDisclosure', ({ reel }) => ({ media: [reel()], aiDisclosure: true })],
  ['firstComment', () => ({ overrides: { firstComment: 'Where: https://example.com' } })],
];

const bodyOf = ({ body, headers }: NetworkCall): string => {
  const mark = /boundary=(\S+)/.exec(headers['content-type'] ?? '')?.[1];
  const text = body
    .map((one) => (Buffer.isBuffer(one) ? one.toString('utf8') : `<bytes ${one.start} to ${one.end}>`))
    .join('');
  if (text === '') return '';
  if (mark === undefined) return ` ${decodeURIComponent(text)}`;
  const parts = text.split(`--${mark}`).slice(1, -1);
  const shown = parts.map((part) => {
    const [head = '', ...rest] = part.split('\r\n\r\n');
    const name = /name="([^"]+)"/.exec(head)?.[1] ?? '';
    return `${name}=${rest.join('').trim()}`;
  });
  return ` {${shown.join('; ')}}`;
};

const headersOf = ({ headers }: NetworkCall): string => {
  const { authorization = '', accept: _, 'content-type': type, ...more } = headers;
  const said = [
    ...(authorization.startsWith('Bearer ') ? [] : [authorization === '' ? 'without a token' : 'OAuth']),
    ...(type === undefined || /^(?:multipart|application\/x-www)/.test(type) ? [] : [type]),
    ...Object.entries(more).map(([name, value]) => `${name}: ${value}`),
  ];
  return said.length === 0 ? '' : ` [${said.join(', ')}]`;
};

export const renderedCalls = async (): Promise<string> => {
  const clock = () => Date.parse('2026-11-29T12:00:00.000Z');
  const world = await facebookWorld({}, { clock });
  world.network.state.advance(clock() - Date.now());
  const { state, origin } = world.network;
  let text = '';
  const section = async (name: string, account: FacebookAccount, run: () => Promise<void>): Promise<void> => {
    const from = world.http.calls.length;
    const before = [...state.access.keys()];
    await run();
    const tokens = [...new Set([...before, ...state.access.keys()])];
    const known: readonly (readonly [string, string])[] = [
      ...tokens.map((token) => [state.proofOf(token), '<proof>'] as const),
      ...tokens.map((token) => [token, '<token>'] as const),
      ...state.comments.map(({ id }) => [id, '<comment>'] as const),
      ...state.made.map((one) => [state.idOf(one), one.kind === 'story' ? '<story>' : '<post>'] as const),
      ...[...state.videos.values()].map(({ session }) => [session, '<session>'] as const),
      ...[...state.videos.keys()].map((id) => [id, '<video>'] as const),
      ...[...state.photos.keys()].map((id) => [id, '<photo>'] as const),
      [account.externalId, '<page>'],
      [origin, ''],
    ];
    const named = (line: string): string => known.reduce((all, [id, as]) => all.replaceAll(id, as), line);
    const calls = world.http.calls.slice(from);
    const line = (call: NetworkCall): string =>
      named(`  ${call.method} ${decodeURIComponent(call.url)}${headersOf(call)}${bodyOf(call)}\n`);
    text += `${name}\n${calls.map(line).join('')}\n`;
  };
  const within = () => AbortSignal.timeout(5_000);
  const wanted = (outcome: { readonly kind: string }, kind: string): void => {
    if (outcome.kind !== kind) throw new Error(JSON.stringify(outcome));
  };
  try {
    for (const [name, over] of cases) {
      const account = await world.account();
      const asked = world.request(account, { content: 'Good morning', ...over(world) });
      await section(name, account, async () => {
        const { outcome } = await world.publish(asked);
        if (outcome.kind !== 'published') throw new Error(`${name}: ${JSON.stringify(outcome)}`);
        const { firstComment } = asked.overrides;
        if (firstComment === undefined) return;
        const { externalId } = outcome;
        const comment = { targetId: asked.targetId, platform: 'facebook', account, externalId } as const;
        wanted(await world.adapter.comment({ ...comment, content: String(firstComment) }, within()), 'posted');
      });
    }
    const account = await world.account();
    for (const [name, over] of [
      ['a text', {}],
      ['photos', { media: [world.photo(), world.photo()] }],
      ['a video', { media: [world.video()] }],
      ['a photo story', { media: [world.photo()], overrides: { contentType: 'story' } }],
    ] as const) {
      const asked = world.request(account, { content: `What of ${name}`, ...over });
      const { steps } = await world.publish(asked);
      await section(`what became of a lost call: ${name}`, account, async () => {
        wanted(await world.adapter.reconcile(asked, steps.crossed), 'present');
      });
    }
    const reel = world.request(account, { media: [world.reel()], overrides: { contentType: 'reel' } });
    const { outcome } = await world.publish(reel);
    if (outcome.kind !== 'published') throw new Error(JSON.stringify(outcome));
    const { externalId } = outcome;
    const follow = { targetId: reel.targetId, platform: 'facebook', account, externalId, content: '' } as const;
    await section('the cover of a reel, behind the publication', account, async () => {
      wanted(await world.adapter.afterStep({ ...follow, step: 'cover', cover: world.photo() }, within()), 'done');
    });
    await section('a token that Facebook does not take any more', account, async () => {
      for (const [token, { pageId }] of state.access) if (pageId === account.externalId) state.access.delete(token);
      const asked = world.request(account, { content: 'With another token' });
      wanted((await world.publish(asked)).outcome, 'published');
    });
    for (const [name, media] of [
      ['photos', [world.photo()]],
      ['a video', [world.video()]],
      ['a reel', [world.reel()]],
    ] as const) {
      const native = {
        ...world.request(account, { content: `Later: ${name}`, media }),
        dueAt: '2026-12-01T12:00:00.000Z',
      };
      const steps = new RecordedSteps(native, 5_000);
      let nativeId = '';
      await section(`handed to Facebook’s own scheduler: ${name}`, account, async () => {
        const handed = await world.scheduler.handOver(native, steps);
        wanted(handed, 'handed_over');
        if (handed.kind === 'handed_over') nativeId = handed.nativeId;
      });
      await section(`${name}: asked for`, account, async () => {
        wanted(await world.scheduler.verify(native, { boundary: steps.crossed, nativeId }), 'scheduled');
      });
      await section(`${name}: asked for where the answer was lost`, account, async () => {
        wanted(await world.scheduler.verify(native, { boundary: steps.crossed, nativeId: null }), 'scheduled');
      });
      await section(`${name}: given another time`, account, async () => {
        wanted(
          await world.scheduler.reschedule({ ...native, dueAt: '2026-12-02T12:00:00.000Z' }, nativeId),
          'rescheduled',
        );
      });
      await section(`${name}: given other words, and another time`, account, async () => {
        const other = { ...native, content: 'Good evening', dueAt: '2026-12-03T12:00:00.000Z' };
        wanted(await world.scheduler.revise(other, nativeId, native), 'revised');
      });
      await section(`${name}: taken back`, account, async () => {
        wanted(await world.scheduler.undo(native, nativeId), 'undone');
      });
    }
    await section('figures of a reel, and of the page', account, async () => {
      const publishedAt = new Date(clock()).toISOString();
      const post = { targetId: reel.targetId, externalId, use: 'reel', hasVideo: true, publishedAt } as const;
      for await (const one of world.source.fetchPostInsights('facebook', account, [post], within()))
        wanted(one, 'reported');
      wanted(await world.source.fetchAccountInsights('facebook', account, within()), 'reported');
    });
    await section('removal', account, async () => {
      wanted(await world.adapter.removePost({ platform: 'facebook', account, externalId }, within()), 'removed');
    });
    return text;
  } finally {
    world.close();
  }
};
