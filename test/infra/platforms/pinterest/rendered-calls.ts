/** The calls that go out to Pinterest for each setting and each kind of media, as text. */
import { readFileSync } from 'node:fs';
import type { NetworkCall } from '#contracts/ports/network-http.ts';
import type { PublishMedia, PublishRequest } from '#contracts/ports/platform.ts';
import {
  afterNothing,
  type HeldFiles,
  heldFiles,
  pinterestWorld,
  pngOf,
} from '#test/support/networks/pinterest/world.ts';

type Over = (files: Files) => Partial<PublishRequest>;

interface Files extends HeldFiles {
  /** A picture that everybody can fetch. */
  hosted(over?: Partial<PublishMedia>): PublishMedia;
  /** One whose address opens to nobody but us. */
  hidden(): PublishMedia;
}

const cover = { use: 'cover' } as const;

const cases: readonly (readonly [string, Over])[] = [
  ['boardId alone', (files) => ({ media: [files.picture()] })],
  ['title', (files) => ({ media: [files.picture()], overrides: { title: ' Autumn ' } })],
  ['title that shows nothing', (files) => ({ media: [files.picture()], overrides: { title: ' \u200b ' } })],
  ['link', (files) => ({ media: [files.picture()], overrides: { link: 'https://example.com/a?u=1#b' } })],
  [
    'everything, without text',
    (files) => ({
      content: '',
      media: [files.picture({ altText: 'A cup' })],
      overrides: { title: 'Autumn', link: 'https://example.com/' },
    }),
  ],
  ['an option of another network', (files) => ({ media: [files.picture()], overrides: { visibility: 'PUBLIC' } })],
  ['one image that Pinterest can fetch', (files) => ({ media: [files.hosted()] })],
  ['two images', (files) => ({ media: [files.picture(), files.picture()] })],
  [
    'five images that Pinterest can fetch, two with alt texts',
    (files) => ({
      media: [
        ...[files.hosted({ altText: 'A cup' }), files.hosted(), files.hosted({ altText: 'A plate' })],
        ...[files.hosted(), files.hosted()],
      ],
    }),
  ],
  ['two images of which one has no address', (files) => ({ media: [files.hosted(), files.picture()] })],
  ['an image that Pinterest cannot fetch, in two attempts', (files) => ({ media: [files.hidden()] })],
  ['a video without a cover', (files) => ({ media: [files.video({ altText: 'It turns' })] })],
  ['a video and its cover', (files) => ({ media: [files.video()], cover: files.picture(cover) })],
  [
    'a video and its cover that Pinterest can fetch',
    (files) => ({ media: [files.video()], cover: files.hosted(cover) }),
  ],
];

const jsonOf = (body: NetworkCall['body']): string => {
  const text = body
    .map((one) =>
      Buffer.isBuffer(one)
        ? one.toString('utf8')
        : readFileSync(one.path).subarray(one.start, one.end).toString(one.as),
    )
    .join('');
  return text.replaceAll(/"((?:cover_image_)?data)":"([^"]+)"/g, (_, name: string, data: string) => {
    const bytes = Buffer.from(data, 'base64');
    return `"${name}":"<${bytes.length} bytes, ${bytes.subarray(1, 4).toString('latin1')}>"`;
  });
};

const bodyOf = ({ body, headers }: NetworkCall): string => {
  const type = headers['content-type'] ?? '';
  if (type === 'application/json') return ` ${jsonOf(body)}`;
  const mark = /boundary=(\S+)/.exec(type)?.[1];
  if (mark === undefined) return '';
  const parts = body.map((one) => (Buffer.isBuffer(one) ? one.toString('utf8') : `<bytes ${one.start} to ${one.end}>`));
  const shown = parts.join('').split(`--${mark}`).slice(1, -1);
  return shown
    .map((part) =>
      part
        .replace(/content-disposition: form-data; /, '')
        .trim()
        .replaceAll('\r\n', ' | '),
    )
    .map((part) => `\n    ${part.replace(/(signature|policy|key|date)" \| {2}\| .*/, '$1" |  | <$1>')}`)
    .join('');
};

/** Ids are numbered in the order in which they come up. */
const namer = (known: ReadonlyMap<string, string>) => {
  const names = new Map(known);
  return (text: string): string =>
    text.replace(/81374422642\d{7}/g, (id) => {
      const name = names.get(id) ?? `<id ${names.size - known.size + 1}>`;
      names.set(id, name);
      return name;
    });
};

export const renderedCalls = async (): Promise<string> => {
  const world = await pinterestWorld();
  const { network } = world;
  const held = heldFiles();
  let pictures = 0;
  const addressed = (over: Partial<PublishMedia> = {}): PublishMedia => {
    pictures += 1;
    const address = `https://files.example/${pictures}.png`;
    return held.picture({ url: async () => address, ...over });
  };
  const hosted = (over: Partial<PublishMedia> = {}): PublishMedia => {
    const picture = addressed(over);
    network.state.web.set(`https://files.example/${pictures}.png`, pngOf(1_000, 1_500));
    return picture;
  };
  try {
    let text = '';
    for (const [name, over] of cases) {
      pictures = 0;
      network.state.web.clear();
      const account = await world.account();
      const board = world.boardOf(account);
      const { overrides = {}, ...given } = over({ ...held, hosted, hidden: addressed });
      let asked = world.request(account, { ...given, overrides: { boardId: board.id, ...overrides } });
      const from = world.http.calls.length;
      let { outcome, steps } = await world.publish(asked);
      if (outcome.kind === 'nothing_sent') {
        asked = afterNothing(asked, steps);
        ({ outcome, steps } = await world.publish(asked));
      }
      if (outcome.kind !== 'published') throw new Error(`${name}: ${JSON.stringify(outcome)}`);
      const called = namer(
        new Map([
          [board.id, '<board>'],
          [account.externalId, '<account>'],
        ]),
      );
      const calls = world.http.calls.slice(from).map((call) => {
        const { authorization = '' } = call.headers;
        const who = authorization.startsWith('Bearer ') ? '' : ' [without a token]';
        return called(`  ${call.method} ${call.url.replace(network.origin, '')}${who}${bodyOf(call)}\n`);
      });
      text += `${name}\n${calls.join('')}\n`;
    }
    return text;
  } finally {
    held.remove();
    network.close();
  }
};
