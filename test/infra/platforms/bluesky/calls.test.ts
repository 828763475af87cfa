/** Every call that goes out for each override and each kind of media, as it stands in `calls.txt`. */
import assert from 'node:assert/strict';
import { createHash, randomUUID } from 'node:crypto';
import { readFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import sharp from 'sharp';
import type { NetworkCall } from '#contracts/ports/network-http.ts';
import type { Json, PublishMedia } from '#contracts/ports/platform.ts';
import { rulesOf } from '#domain/platforms/index.ts';
import { clipForAdapter } from '#test/support/clip.ts';
import { mediaFolder } from '#test/support/media/folder.ts';
import { orMissing } from '#test/support/missing.ts';
import { startBlueskyServices } from '#test/support/networks/bluesky-services.ts';
import { type BlueskyWorld, blueskyWorld } from '#test/support/networks/bluesky-world.ts';
import { type Identity, sharedPds } from '#test/support/networks/pds.ts';
import { suite } from '#test/support/suite.ts';

/** Where no registry answers, the tests are left out, and say so. */
const opened = await orMissing(sharedPds().then((pds) => ({ pds })));

const file = path.join(import.meta.dirname, 'calls.txt');

suite('bluesky: the calls that go out', { timeoutMs: 60_000 }, (t) => {
  if ('missing' in opened) return t.skip('runs against the real server', opened.missing);
  const { pds } = opened;
  let world: BlueskyWorld;
  let ann: Identity;
  let bob: Identity;
  const said: string[] = [];

  const picture = async (altText: string | null): Promise<PublishMedia> => {
    const place = path.join(mediaFolder(), 'a.jpg');
    const body = await sharp({ create: { width: 60, height: 40, channels: 3, background: '#7a5a3c' } })
      .jpeg()
      .toBuffer();
    writeFileSync(place, body);
    return {
      ...{ mediaId: randomUUID(), kind: 'image', use: 'feed', contentType: 'image/jpeg', bytes: body.length },
      ...{ sha256: createHash('sha256').update(body).digest('hex'), width: 60, height: 40, durationMs: null, altText },
      ...{ file: async () => place, url: async () => '' },
    };
  };

  /** Without what differs from run to run. */
  const plain = (text: string, names: ReadonlyMap<string, string>): string => {
    let shown = text;
    for (const [value, name] of names) shown = shown.replaceAll(value, name);
    return shown
      .replaceAll(/bafkrei[a-z2-7]{52}/g, '{blob}')
      .replaceAll(/bafyrei[a-z2-7]{52}/g, '{cid}')
      .replaceAll(/\b3[a-z2-7]{12}\b/g, '{key}')
      .replaceAll(/\d{4}-\d\d-\d\dT[\d:.]{8,12}Z/g, '{now}')
      .replaceAll(/"(size|sizeBytes)":\d+/g, '"$1":{bytes}')
      .replaceAll(/exp=\d+/g, 'exp={in half an hour}')
      .replaceAll(/jobId=[\da-f]+/g, 'jobId={job}')
      .replaceAll(/"jobId":"[\da-f]+"/g, '"jobId":"{job}"')
      .replaceAll(/[\da-f]{8}-[\da-f-]{27}/g, '{target}');
  };
  const shownCall = ({ method, url, headers, body, isSecret }: NetworkCall, names: ReadonlyMap<string, string>) => {
    const isJson = headers['content-type'] === 'application/json';
    const parts = body.map((piece) => (Buffer.isBuffer(piece) && isJson ? String(piece) : 'the bytes of the file'));
    const sent = Object.entries(headers).map(
      ([name, value]) => `  ${name}: ${value.replace(/^Bearer .*/, 'Bearer …')}`,
    );
    const lines = [`${method} ${decodeURIComponent(url)}`, ...sent, ...parts.map((part) => `  ${part}`)];
    return plain(lines.join('\n'), names) + (isSecret === true ? '\n  (nothing of it is kept)' : '');
  };

  const shown = async (title: string, calls: () => Promise<unknown>, names: ReadonlyMap<string, string>) => {
    const from = world.http.calls.length;
    await calls();
    const made = world.http.calls.slice(from).map((call) => shownCall(call, names));
    // How often a job is asked for is the service's affair.
    const once = made.filter((one, at) => one !== made[at - 1]);
    said.push(`## ${title}\n\n${once.join('\n\n')}\n`);
  };

  t('are those of the file', async () => {
    const services = await startBlueskyServices(pds);
    world = await blueskyWorld(pds, { videoService: services.origin, videoPollMs: 5 });
    [ann, bob] = [await pds.identity(), await pds.identity()];
    const account = await world.connected(ann);
    const names = new Map([
      [ann.did, '{did}'],
      [bob.did, '{did of bob}'],
      [bob.handle, 'bob.test'],
      [ann.handle, 'ann.test'],
      [pds.service, 'https://{server}'],
      [`${services.origin}/page`, 'https://example.com/page'],
      [`${services.origin}/thumb.png`, 'https://example.com/thumb.png'],
      [services.origin, 'https://video.bsky.app'],
      ['did:web:127.0.0.1&', 'did:web:video.bsky.app&'],
    ]);
    const publish = (over: Parameters<BlueskyWorld['request']>[1]) => async () => {
      const { outcome } = await world.publish(world.request(account, over));
      assert.equal(outcome.kind, 'published', JSON.stringify(outcome));
      return outcome;
    };
    const text = { content: 'Good morning' };
    await shown('A text', publish(text), names);
    const rich = `Hi @${bob.handle}, see #coffee at 127.0.0.1`;
    await shown('A mention and a tag', publish({ content: rich }), names);
    await shown(
      'A picture with an alt text, and one without',
      publish({ ...text, media: [await picture('A cup'), await picture(null)] }),
      names,
    );
    const five = await Promise.all(Array.from({ length: 5 }, () => picture('x')));
    await shown('Five pictures: a gallery', publish({ ...text, media: five }), names);
    const clip = { ...(await clipForAdapter()), altText: 'Steam' };
    services.parts.partSizeBytes = Math.ceil(clip.bytes / 2);
    await shown('A video, in two parts', publish({ ...text, media: [clip] }), names);
    services.parts.isOffered = false;
    await shown('A video, by a service without uploads in parts', publish({ ...text, media: [clip] }), names);
    const overrides: Readonly<Record<string, Json>> = {
      link: `${services.origin}/page`,
      labelSexual: true,
      labelNudity: true,
      labelPorn: true,
      labelGraphicMedia: true,
    };
    const keys = Object.keys(rulesOf('bluesky').overrides);
    assert.deepEqual(keys.toSorted(), [...Object.keys(overrides), 'firstComment'].toSorted(), 'each has its part here');
    for (const [key, value] of Object.entries(overrides)) {
      await shown(`Override ${key}`, publish({ ...text, overrides: { [key]: value } }), names);
    }
    const post = await publish(text)();
    assert.ok(post.kind === 'published');
    const comment = { targetId: randomUUID(), platform: 'bluesky', account, externalId: post.externalId } as const;
    const reply = () => world.adapter.comment({ ...comment, content: 'First' }, AbortSignal.timeout(5_000));
    await shown('Override firstComment', reply, names);
    services.close();
    const all = `${said.join('\n')}`;
    if (process.env.WRITE === '1') writeFileSync(file, all);
    assert.equal(
      all,
      readFileSync(file, 'utf8'),
      'after a change that is meant: WRITE=1 node test/infra/platforms/bluesky/calls.test.ts',
    );
  });
});
