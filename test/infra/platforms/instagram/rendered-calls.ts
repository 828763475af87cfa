/** The calls that go out to Instagram for each setting and each kind of media, as text. */
import type { NetworkCall } from '#contracts/ports/network-http.ts';
import type { PublishMedia, PublishRequest } from '#contracts/ports/platform.ts';
import type { Host } from '#test/support/networks/instagram/state.ts';
import { type InstagramWorld, instagramWorld } from '#test/support/networks/instagram/world.ts';

type Over = (world: InstagramWorld) => Partial<PublishRequest>;
type Case = readonly [name: string, over: Over, by?: Host];

const image = ({ media }: InstagramWorld, over: Partial<PublishMedia> = {}) => media(over);
const video = ({ media }: InstagramWorld, over: Partial<PublishMedia> = {}) =>
  media({ kind: 'video', use: 'reel', contentType: 'video/mp4', durationMs: 9_000, ...over });
const picture =
  (overrides: PublishRequest['overrides'] = {}): Over =>
  (world) => ({ media: [image(world)], overrides });
const reel =
  (overrides: PublishRequest['overrides'] = {}): Over =>
  (world) => ({ media: [video(world)], overrides });
const inCarousel = { use: 'carousel' } as const;

const cases: readonly Case[] = [
  ['one image with an alt text', (world) => ({ media: [image(world, { altText: 'A cup' })] })],
  ['one image without words', (world) => ({ media: [image(world)], content: '' })],
  ['one image, by the login of Facebook', picture(), 'fb'],
  ['contentType: feed', picture({ contentType: 'feed' })],
  ['contentType: reel', reel({ contentType: 'reel' })],
  ['contentType: story, of an image', (world) => ({ media: [image(world, { use: 'story', altText: 'Not sent' })] })],
  [
    'contentType: story, of a video, with people and made with AI',
    (world) => ({
      media: [video(world, { use: 'story' })],
      ...{ overrides: { contentType: 'story', userTags: ['ada'] }, aiDisclosure: true },
    }),
  ],
  ['one video without contentType, which is a reel', reel()],
  ['firstComment', picture({ firstComment: 'And a comment' })],
  ['userTags: usernames on an image, side by side', picture({ userTags: ['ada', '@bob'] })],
  ['userTags: with places on an image', picture({ userTags: [{ username: 'ada', x: 0.25, y: 0.75 }] })],
  ['userTags: on a reel, which has no places', reel({ userTags: [{ username: 'ada', x: 0.25, y: 0.75 }] })],
  ['collaborators', picture({ collaborators: ['ada', '@bob'] })],
  ['shareToFeed: true', reel({ shareToFeed: true })],
  ['shareToFeed: false', reel({ shareToFeed: false })],
  ['coverUrl', (world) => reel({ coverUrl: `${world.files.origin}/image-jpeg/mine` })(world)],
  ['a cover of its own', (world) => ({ media: [video(world)], cover: image(world, { use: 'cover' }) })],
  ['a frame of the video as its cover', (world) => ({ media: [video(world)], coverFrameMs: 1_500 })],
  ['locationId', picture({ locationId: '106078429431815' })],
  ['paidPartnership: true, by the login of Facebook', picture({ paidPartnership: true }), 'fb'],
  ['paidPartnership: false', picture({ paidPartnership: false })],
  ['made with AI', (world) => ({ media: [image(world)], aiDisclosure: true })],
  [
    'aiGenerated: false, of a post made with AI',
    (world) => ({ ...picture({ aiGenerated: false })(world), aiDisclosure: true }),
  ],
  [
    'a carousel of two images and a video, its words, people, place and label',
    (world) => ({
      media: [image(world, { ...inCarousel, altText: 'A cup' }), video(world, inCarousel), image(world, inCarousel)],
      overrides: { collaborators: ['ada'], userTags: ['bob'], locationId: '106078429431815' },
      aiDisclosure: true,
    }),
  ],
];

const bodyOf = ({ body }: NetworkCall): string =>
  [...new URLSearchParams(body.map(String).join(''))].map(([name, value]) => `\n    ${name}=${value}`).join('');

/** Ids are numbered in the order in which they come up. */
const namer = ({ network }: InstagramWorld, account: string) => {
  const names = new Map([[account, '<account>']]);
  return (text: string): string =>
    text.replace(/179000000000\d{5}/g, (id) => {
      const name = names.get(id) ?? `<${network.state.containers.has(id) ? 'container' : 'media'} ${names.size}>`;
      names.set(id, name);
      return name;
    });
};

const hosts: Readonly<Record<string, string>> = { '/ig': 'graph.instagram.com', '/fb': 'graph.facebook.com' };

const shown = (world: InstagramWorld, calls: readonly NetworkCall[], name: (text: string) => string): string =>
  calls
    .map((call) => {
      const { authorization = '' } = call.headers;
      const who = authorization.startsWith('Bearer ') ? '' : ' [without a token]';
      const address = decodeURIComponent(call.url.replace(world.network.origin, ''))
        .replace(/^\/(?:ig|fb)/, (one) => hosts[one] ?? one)
        .replace(/appsecret_proof=[0-9a-f]{64}/, 'appsecret_proof=<proof>');
      const text = `  ${call.method} ${address}${who}${bodyOf(call)}\n`;
      return name(text.replaceAll(world.files.origin, '<files>').replace(/(<files>\/[\w-]+\/)[\w-]{36}/g, '$1<file>'));
    })
    .join('');

/** What is asked of an account that came by this login, beside its posts. */
const asked = async (world: InstagramWorld, by: Host): Promise<string> => {
  const { adapter, network, http } = world;
  const account = await world.account({ by });
  const login = by === 'ig' ? 'by its own login' : 'by the login of Facebook';
  let text = '';
  const section = async (name: string, ask: () => Promise<{ readonly kind: string }>, kind: string) => {
    const from = http.calls.length;
    const outcome = await ask();
    if (outcome.kind !== kind) throw new Error(`${name}: ${JSON.stringify(outcome)}`);
    const calls = shown(world, http.calls.slice(from), namer(world, account.externalId));
    // Those of one day are those of the others.
    const timeless = calls.replaceAll(/\b(since|until)=\d+/g, '$1=<instant>').split(/(?<=\n)/);
    text += `${name}, ${login}\n${[...new Set(timeless)].join('')}\n`;
  };
  const within = () => AbortSignal.timeout(5_000);
  for (const [name, media] of [
    ['a post', image(world)],
    ['a reel', video(world)],
    ['a story', image(world, { use: 'story' })],
  ] as const) {
    const overrides = media.use === 'story' ? { contentType: 'story' } : {};
    const request = world.request(account, { content: `Of ${name}`, media: [media], overrides });
    const { outcome, steps } = await world.publish(request);
    if (outcome.kind !== 'published') throw new Error(JSON.stringify(outcome));
    await section(`what became of a lost call: ${name}`, () => adapter.reconcile(request, steps.crossed), 'present');
    const { externalId, publishedAt } = outcome;
    const { use, kind } = media;
    const subject = { targetId: request.targetId, externalId, publishedAt, use, hasVideo: kind === 'video' };
    network.state.advance(7_200_000);
    const figures = async () => {
      for await (const one of adapter.fetchPostInsights('instagram', account, [subject], within())) return one;
      return { kind: 'no answer' };
    };
    await section(`figures of ${name}`, figures, 'reported');
    if (by === 'fb' && use === 'feed') {
      const removal = { platform: 'instagram', account, externalId } as const;
      await section('removal', () => adapter.removePost(removal, within()), 'removed');
    }
  }
  await section(
    'figures of the account',
    () => adapter.fetchAccountInsights('instagram', account, within()),
    'reported',
  );
  return text;
};

export const renderedCalls = async (): Promise<string> => {
  const world = await instagramWorld();
  try {
    let text = '';
    for (const [name, over, by = 'ig'] of cases) {
      const account = await world.account({ by });
      const request = world.request(account, over(world));
      const from = world.http.calls.length;
      const { outcome } = await world.publish(request);
      if (outcome.kind !== 'published') throw new Error(`${name}: ${JSON.stringify(outcome)}`);
      const { targetId, overrides } = request;
      if (overrides.firstComment !== undefined) {
        const content = String(overrides.firstComment);
        const comment = { targetId, platform: 'instagram', account, externalId: outcome.externalId, content } as const;
        const posted = await world.adapter.comment(comment, AbortSignal.timeout(5_000));
        if (posted.kind !== 'posted') throw new Error(JSON.stringify(posted));
      }
      text += `${name}\n${shown(world, world.http.calls.slice(from), namer(world, account.externalId))}\n`;
    }
    for (const by of ['ig', 'fb'] as const) text += await asked(world, by);
    return text;
  } finally {
    world.close();
  }
};
