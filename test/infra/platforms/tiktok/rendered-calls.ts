/** The calls that go out to TikTok for each setting and each kind of media, as text. */
import type { NetworkCall } from '#contracts/ports/network-http.ts';
import type { PublishMedia, PublishRequest } from '#contracts/ports/platform.ts';
import type { Person } from '#test/support/networks/tiktok/index.ts';
import { type HeldFiles, provenHost, tiktokWorld } from '#test/support/networks/tiktok/world.ts';

type Over = (files: HeldFiles) => Partial<PublishRequest> & { readonly person?: Partial<Person> };

const everyone = { privacyLevel: 'PUBLIC_TO_EVERYONE' };

const cases: readonly (readonly [string, Over])[] = [
  ['privacyLevel alone', () => ({ overrides: everyone })],
  ['privacyLevel MUTUAL_FOLLOW_FRIENDS', () => ({ overrides: { privacyLevel: 'MUTUAL_FOLLOW_FRIENDS' } })],
  [
    'privacyLevel FOLLOWER_OF_CREATOR, of a private account',
    () => ({ overrides: { privacyLevel: 'FOLLOWER_OF_CREATOR' }, person: { isPrivate: true } }),
  ],
  ['privacyLevel SELF_ONLY', () => ({ overrides: { privacyLevel: 'SELF_ONLY' } })],
  ['yourBrand', () => ({ overrides: { ...everyone, yourBrand: true } })],
  ['brandedContent', () => ({ overrides: { ...everyone, brandedContent: true } })],
  ['disableComment', () => ({ overrides: { ...everyone, disableComment: true } })],
  ['disableDuet', () => ({ overrides: { ...everyone, disableDuet: true } })],
  ['disableStitch', () => ({ overrides: { ...everyone, disableStitch: true } })],
  [
    'an account with comments, duets and stitches off',
    () => ({ person: { noComment: true, noDuet: true, noStitch: true } }),
  ],
  ['aiGenerated', () => ({ aiDisclosure: true, overrides: { ...everyone, isAigc: true } })],
  ['coverFrameMs', () => ({ coverFrameMs: 1_500, overrides: everyone })],
  ['an option of another network', () => ({ overrides: { ...everyone, visibility: 'PUBLIC' } })],
  ['a video of 25 MB in two parts', (files) => ({ media: [files.video({}, 25_000_000)] })],
  [
    'a video of QuickTime without a text',
    (files) => ({ content: '', media: [files.video({ contentType: 'video/quicktime' })] }),
  ],
  ['one picture', (files) => ({ media: [files.picture()], overrides: everyone })],
  [
    'three pictures with every setting',
    (files) => ({
      ...{ media: [files.picture(), files.picture(), files.picture()], aiDisclosure: true },
      overrides: { ...everyone, yourBrand: true, brandedContent: true, disableComment: true, disableDuet: true },
    }),
  ],
];

const bodyOf = ({ body, headers }: NetworkCall): string => {
  if (body.length === 0) return '';
  const parts = body.map((one) => (Buffer.isBuffer(one) ? one.toString('utf8') : `<bytes ${one.start} to ${one.end}>`));
  const range = headers['content-range'];
  return ` ${range === undefined ? '' : `[${headers['content-type']}, ${range}] `}${parts.join('')}`;
};

/** Ids, tokens and addresses are numbered in the order in which they come up. */
const namer = () => {
  const names = new Map<string, string>();
  return (text: string): string =>
    text
      .replaceAll(/v_pub_file~v2-1\.\d+|p_pub_url~v2\.\d+/g, '<publish_id>')
      .replaceAll(/upload_id=\d+&upload_token=[\w.-]+/g, '<upload>')
      .replaceAll(new RegExp(`${provenHost}[\\w-]+`, 'g'), (one) => {
        const name = names.get(one) ?? `${provenHost}<${names.size + 1}>`;
        names.set(one, name);
        return name;
      });
};

export const renderedCalls = async (): Promise<string> => {
  const world = await tiktokWorld();
  const { network, files } = world;
  try {
    let text = '';
    for (const [name, over] of cases) {
      const { person, ...more } = over(files);
      const account = await world.account(network.person(person));
      const media: readonly PublishMedia[] = more.media ?? [files.video()];
      const from = world.http.calls.length;
      const { outcome } = await world.publish(world.request(account, { ...more, media }));
      if (outcome.kind !== 'published') throw new Error(`${name}: ${JSON.stringify(outcome)}`);
      const named = namer();
      const calls = world.http.calls.slice(from).map((call) => {
        const who = (call.headers.authorization ?? '').startsWith('Bearer ') ? '' : ' [without a token]';
        return named(`  ${call.method} ${call.url.replace(network.origin, '')}${who}${bodyOf(call)}\n`);
      });
      text += `${name}\n${calls.join('')}\n`;
    }
    return text;
  } finally {
    world.close();
  }
};
