/** The calls that go out to Threads for each setting and each kind of media, as text. */
import type { NetworkCall } from '#contracts/ports/network-http.ts';
import type { PublishRequest } from '#contracts/ports/platform.ts';
import { type ThreadsWorld, threadsWorld } from '#test/support/networks/threads/world.ts';

type Over = (world: ThreadsWorld) => Partial<PublishRequest>;

const image = ({ media }: ThreadsWorld, altText: string | null = null) => media({ altText });
const video = ({ media }: ThreadsWorld, altText: string | null = null) =>
  media({ kind: 'video', contentType: 'video/mp4', durationMs: 3_000, altText });

/** `of 3`: a thread of three segments. */
const cases: readonly (readonly [string, Over])[] = [
  ['text', () => ({})],
  ['text with an address, of which Threads makes a card', () => ({ content: 'See https://example.com/a?b=1&c=2' })],
  ['quotePostId', () => ({ overrides: { quotePostId: '<quoted>' } })],
  ['replyControl: everyone', () => ({ overrides: { replyControl: 'everyone' } })],
  ['replyControl: accounts_you_follow', () => ({ overrides: { replyControl: 'accounts_you_follow' } })],
  ['replyControl: mentioned_only', () => ({ overrides: { replyControl: 'mentioned_only' } })],
  ['firstComment', () => ({ overrides: { firstComment: 'And a comment' } })],
  ['one image with an alt text', (world) => ({ media: [image(world, 'A cup')] })],
  ['one image without text', (world) => ({ content: '', media: [image(world)] })],
  ['one video with an alt text', (world) => ({ media: [video(world, 'It pours')] })],
  [
    'a carousel of two images and a video, two with alt texts, with a quote and a reply control',
    (world) => ({
      media: [image(world, 'A cup'), video(world, 'It pours'), image(world)],
      overrides: { quotePostId: '<quoted>', replyControl: 'mentioned_only' },
    }),
  ],
  [
    'a thread of three, its settings on the head alone, the second with an image',
    () => ({
      overrides: { quotePostId: '<quoted>', replyControl: 'accounts_you_follow' },
      thread: { index: 0, of: 3, replyTo: null },
    }),
  ],
];

const bodyOf = ({ body }: NetworkCall): string =>
  [...new URLSearchParams(body.map(String).join(''))].map(([name, value]) => `\n    ${name}=${value}`).join('');

/** Ids are numbered in the order in which they come up. */
const namer = (known: ReadonlyMap<string, string>) => {
  const names = new Map(known);
  return (text: string): string =>
    text.replace(/179000000000\d{5}/g, (id) => {
      const name = names.get(id) ?? `<id ${names.size - known.size + 1}>`;
      names.set(id, name);
      return name;
    });
};

const shown = (world: ThreadsWorld, calls: readonly NetworkCall[], name: (text: string) => string): string =>
  calls
    .map((call) => {
      const { authorization = '' } = call.headers;
      const who = authorization.startsWith('Bearer ') ? '' : ' [without a token]';
      const address = decodeURIComponent(call.url.replace(world.network.origin, ''));
      const text = `  ${call.method} ${address}${who}${bodyOf(call)}\n`;
      return name(text.replaceAll(world.files.origin, '<files>').replace(/(<files>\/[\w-]+\/)[\w-]{36}/g, '$1<file>'));
    })
    .join('');

export const renderedCalls = async (): Promise<string> => {
  const world = await threadsWorld();
  try {
    const quoted = await world.publish(world.request(await world.account(), { content: 'Quote me' }));
    if (quoted.outcome.kind !== 'published') throw new Error(JSON.stringify(quoted.outcome));
    const quotedId = quoted.outcome.externalId;
    let text = '';
    for (const [name, over] of cases) {
      const account = await world.account();
      const given = over(world);
      const overrides = JSON.parse(JSON.stringify(given.overrides ?? {}).replace('<quoted>', quotedId));
      const asked = world.request(account, { ...given, overrides });
      const known = new Map([
        [quotedId, '<quoted>'],
        [account.externalId, '<account>'],
      ]);
      const from = world.http.calls.length;
      const publish = async (request: PublishRequest): Promise<string> => {
        const { outcome } = await world.publish(request);
        if (outcome.kind !== 'published') throw new Error(`${name}: ${JSON.stringify(outcome)}`);
        return outcome.externalId;
      };
      const externalId = await publish(asked);
      if (overrides.firstComment !== undefined) {
        const { targetId } = asked;
        const content = String(overrides.firstComment);
        const comment = { targetId, platform: 'threads', account, externalId, content } as const;
        const posted = await world.adapter.comment(comment, AbortSignal.timeout(5_000));
        if (posted.kind !== 'posted') throw new Error(JSON.stringify(posted));
      }
      let parent = externalId;
      for (let index = 1; index < (asked.thread?.of ?? 0); index += 1) {
        const thread = { index, of: 3, replyTo: { parent, head: externalId } };
        const media = index === 1 ? [image(world)] : [];
        parent = await publish({ ...asked, content: `Segment ${index + 1}`, media, thread });
      }
      text += `${name}\n${shown(world, world.http.calls.slice(from), namer(known))}\n`;
    }
    return text;
  } finally {
    world.close();
  }
};
