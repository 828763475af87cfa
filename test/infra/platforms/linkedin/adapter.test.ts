/** What the adapter of LinkedIn does beyond the suite of all networks. */
import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { mkdtempSync, rmSync, truncateSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { RecordedSteps } from '#contracts/ports/platform.suite.ts';
import { little, shownText } from '#infra/platforms/linkedin/post.ts';
import { problems } from '#test/support/networks/linkedin/index.ts';
import { littleText } from '#test/support/networks/linkedin/little.ts';
import { type LinkedInAccount, type LinkedInWorld, linkedinWorld } from '#test/support/networks/linkedin/world.ts';
import { mediaOf } from '#test/support/networks/world-parts.ts';
import { suite } from '#test/support/suite.ts';

const folder = mkdtempSync(path.join(tmpdir(), 'linkedin-adapter-'));
const file = path.join(folder, 'video');
const videoBytes = 9_000_000;
const video = () => mediaOf(file, { kind: 'video', contentType: 'video/mp4', bytes: videoBytes });
const picture = () => mediaOf(file, { kind: 'image', contentType: 'image/png', bytes: 900 });
const pdf = () => mediaOf(file, { kind: 'document', contentType: 'application/pdf', bytes: 900 });

const routesOf = ({ network }: LinkedInWorld) =>
  network.state.calls.map(({ method, path: at }) => `${method} ${at.replace(/urn%3A[^/]+/, ':id')}`);
const counted = (world: LinkedInWorld, name: string) => routesOf(world).filter((one) => one.startsWith(name)).length;
const create = 'POST /rest/posts';

suite('texts of linkedin', (t) => {
  const texts = [
    'Prices (net) [2026] #1 in a_b, C# and e@mail.test',
    'A(',
    ')[]{}<>#*_~|\\@',
    '\\( is no escape, and \\\\ neither',
    'Snake #snake_case #Café #日本語 and ＃wide, (#inside) "#quoted"',
    'See https://example.com/a_(b)/~me?x=[1]#frag_ment and http://x.test/#top.',
    '@[Not a mention](https://example.com) @[] @[x](urn:li:fish:1)',
    '{hashtag|\\#|tag} is what the author wrote',
    `${'_'.repeat(500)}(${'#'.repeat(500)}`,
    'Zeile 1\nZeile 2 😀 #🎉 #👩‍👩‍👧',
  ];

  t('23: signs of the little text format are shown as they were written, whatever they are', async () => {
    for (const text of texts) {
      const read = littleText(little(text));
      assert.deepEqual([read.shown, read.isCut], [text, false], little(text));
      assert.equal(shownText(little(text)), text);
    }
    const signs = '\\|{}@[]()<>#*_~ \n aé#1';
    for (let round = 0; round < 2_000; round += 1) {
      const text = Array.from({ length: 12 }, () => signs[Math.floor(Math.random() * signs.length)]).join('');
      const read = littleText(little(text));
      assert.deepEqual([read.shown, read.isCut], [text, false], JSON.stringify(text));
    }
    // What the simulator does with a text that nobody escaped, as LinkedIn was seen to do.
    assert.deepEqual(littleText('Prices (net)'), { shown: 'Prices ', hashtags: [], mentions: [], isCut: true });
  });

  t('23: the post shows the text whole, and the comment has no backslashes', async () => {
    const world = await linkedinWorld();
    const account = await world.member();
    for (const content of texts) {
      const { outcome } = await world.publish(world.request(account, { content }));
      assert.ok(outcome.kind === 'published', JSON.stringify(outcome));
      assert.equal(world.network.state.post(outcome.externalId)?.text.shown, content);
      const comment = { targetId: randomUUID(), platform: 'linkedin', account, ...outcome, content } as const;
      assert.equal((await world.adapter.comment(comment, AbortSignal.timeout(5_000))).kind, 'posted');
      assert.equal(world.network.state.comments.at(-1)?.text, content);
    }
    world.network.close();
  });

  t('a hashtag is one where it stands alone and has a letter; a mention keeps its name and is one', () => {
    const read = littleText(
      little('#one (#two_b) no#three #4 https://x.test/(#five) @[Acme (Inc.) [1]](urn:li:organization:7)!'),
    );
    assert.deepEqual(read.hashtags, ['one', 'two_b']);
    assert.deepEqual(read.mentions, []);
    const { mentions, shown } = littleText(
      little('With @[Acme (Inc.)](urn:li:organization:7) and @[Ada](urn:li:person:A-b_1)'),
    );
    assert.deepEqual(mentions, [
      { name: 'Acme (Inc.)', urn: 'urn:li:organization:7' },
      { name: 'Ada', urn: 'urn:li:person:A-b_1' },
    ]);
    assert.equal(shown, 'With Acme (Inc.) and Ada');
  });

  t('a hostile text of many characters costs no time', () => {
    for (const text of ['#'.repeat(200_000), '@['.repeat(100_000), '{hashtag|'.repeat(30_000), '\\'.repeat(200_000)]) {
      const since = performance.now();
      shownText(little(text));
      assert.ok(performance.now() - since < 1_000, `${text.slice(0, 10)}: ${performance.now() - since} ms`);
    }
  });
});

suite('linkedin', (t) => {
  let world: LinkedInWorld;
  t.before(() => {
    writeFileSync(file, '');
    truncateSync(file, videoBytes);
  });
  t.after(() => rmSync(folder, { recursive: true, force: true }));
  t.before.each(async () => {
    world = await linkedinWorld();
  });
  t.after.each(() => world.network.close());

  const again = async (asked: Parameters<LinkedInWorld['publish']>[0], steps: RecordedSteps) =>
    world.publish({ ...asked, attempt: asked.attempt + 1, checkpoints: steps.checkpoints });

  t('24: a version that has ended stops the queue, blames the operator, fails no target and no account', async () => {
    world.network.state.versions = ['202609'];
    const accounts = [await world.member(), await world.organization(), await world.member()];
    const outcomes = [];
    for (const account of accounts) outcomes.push(await world.publish(world.request(account, { media: [picture()] })));
    for (const { outcome, steps } of outcomes) {
      assert.ok(outcome.kind === 'rate_limited', JSON.stringify(outcome));
      assert.equal(outcome.failure.actor, 'service');
      assert.match(outcome.failure.platformMessage ?? '', /Requested version .* is not active/);
      assert.ok(!steps.log.includes('boundary'));
    }
    assert.equal(world.network.state.calls.length, 1, 'the first call rests the app');
    const [account] = accounts as [LinkedInAccount];
    const comment = { targetId: randomUUID(), platform: 'linkedin', account, externalId: 'urn:li:share:1' } as const;
    const said = await world.adapter.comment({ ...comment, content: 'C' }, AbortSignal.timeout(1_000));
    assert.equal(said.kind, 'rate_limited');
    const figures = await world.source.fetchAccountInsights('linkedin', account, AbortSignal.timeout(1_000));
    assert.equal(figures.kind, 'rate_limited');
    assert.equal(world.network.state.calls.length, 1);
    // The operator sets another version, and the queue goes on.
    const { adapter } = world.again({ LINKEDIN_VERSION: '202609' });
    world.network.state.advance(900_001);
    for (const one of accounts) {
      assert.equal(
        (await world.publish(world.request(one, { media: [picture()] }), adapter)).outcome.kind,
        'published',
      );
    }
    assert.ok(
      world.network.state.calls
        .slice(1)
        .every(({ path: at, version }) => !at.startsWith('/rest') || version === '202609'),
    );
  });

  t('24: a version that ends between the files and the post leaves nothing out', async () => {
    const account = await world.member();
    world.network.script({ route: create, then: { answer: problems.version_ended } });
    const { outcome } = await world.publish(world.request(account, { media: [picture()] }));
    assert.ok(outcome.kind === 'rate_limited' && outcome.failure.actor === 'service');
    assert.equal(world.network.state.posts.length, 0);
  });

  t('a lost post of an organization is found by its text or its files, and is never sent again', async () => {
    for (const [content, media] of [
      ['Text with (signs), a #hashtag and a_b', []],
      ['', [picture()]],
      ['', [picture(), picture()]],
      ['With words', [video()]],
      ['A file', [pdf()]],
    ] as const) {
      const account = await world.organization();
      const before = world.http.calls.length;
      await world.publish(world.request(account, { content: `Another ${content}`, media: media.slice(0, 1) }));
      for (const then of [
        'drop_after',
        { answerAfter: problems.unavailable },
        { answerAfter: problems.conflict },
      ] as const) {
        world.network.script({ route: create, then });
        const request = world.request(account, { content: `${content}${media.length > 0 ? '' : randomUUID()}`, media });
        const { outcome, steps } = await world.publish(request);
        assert.equal(outcome.kind, 'unknown', JSON.stringify(outcome));
        const creates = world.network.state.creates.length;
        const seen = await world.adapter.reconcile(request, steps.crossed);
        assert.ok(seen.kind === 'present', `${content}: ${JSON.stringify(seen)}`);
        assert.equal(seen.externalId, world.network.state.posts.at(-1)?.id);
        assert.equal(seen.permalink, `https://www.linkedin.com/feed/update/${seen.externalId}/`);
        assert.equal(world.network.state.creates.length, creates);
        const changed = await world.adapter.reconcile({ ...request, content: 'Changed' }, steps.crossed);
        assert.equal(changed.kind, 'undecided');
      }
      assert.ok(world.http.calls.length > before);
    }
  });

  t('parts that are not the file, or of addresses too long to keep, begin no upload', async () => {
    const account = await world.organization();
    const [id, url] = ['urn:li:video:C4E1', `${world.network.origin}/dms-uploads/video/x`];
    const begun = async (parts: readonly (readonly [number, number])[], name = url) => {
      const uploadInstructions = parts.map(([firstByte, lastByte]) => ({ uploadUrl: name, firstByte, lastByte }));
      const answer = { status: 200, body: { value: { video: id, uploadToken: '', uploadInstructions } } };
      world.network.script({ route: 'POST /rest/videos', then: { answer } });
      const { outcome, steps } = await world.publish(world.request(account, { media: [video()] }));
      assert.ok(!steps.log.includes('boundary'));
      const kept = Math.max(0, ...steps.checkpoints.map(({ data }) => JSON.stringify(data).length));
      assert.ok(kept < 400_000, `${kept} bytes in a checkpoint`);
      return outcome;
    };
    const backwards = [
      [0, videoBytes + 99],
      [videoBytes + 100, videoBytes - 1],
    ] as const;
    for (const parts of [backwards, [[0, 0.5]] as const]) {
      const outcome = await begun(parts);
      assert.ok(outcome.kind === 'deferred', JSON.stringify(outcome));
      assert.match(outcome.failure.platformMessage ?? '', /does not say where the file goes/);
    }
    const many = Array.from({ length: 1_500 }, (_, at) => [at * 6_000, at * 6_000 + 5_999] as const);
    const refused = await begun(many, `${url}?${'s'.repeat(400)}`);
    assert.ok(refused.kind === 'failed', JSON.stringify(refused));
    assert.equal(refused.failure.category, 'media');
    assert.match(refused.failure.platformMessage ?? '', /than can be kept/);
    assert.equal(counted(world, 'PUT'), 0, 'no byte was sent');
  });

  t('times that no post can have fail no search and no upload', async () => {
    const account = await world.organization();
    for (const publishedAt of [1e300, -1e300]) {
      world.network.script({ route: create, then: 'drop_after' });
      const request = world.request(account, { content: randomUUID() });
      const { steps } = await world.publish(request);
      const { id, at } = world.network.state.posts.at(-1) ?? assert.fail();
      const one = { id, author: account.externalId, commentary: request.content, createdAt: at, publishedAt };
      const answer = { status: 200, body: { paging: { start: 0 }, elements: [one] } };
      world.network.script({ route: 'GET /rest/posts', then: { answer } });
      const seen = await world.adapter.reconcile(request, steps.crossed);
      assert.ok(seen.kind === 'present', JSON.stringify(seen));
      assert.equal(seen.publishedAt, new Date(at).toISOString());
      const value = { uploadUrl: `${world.network.origin}/dms-uploads/image/x`, image: 'urn:li:image:C4E1' };
      const started = { status: 200, body: { value: { ...value, uploadUrlExpiresAt: publishedAt } } };
      world.network.script({ route: 'POST /rest/images', then: { answer: started } });
      const { outcome } = await world.publish(world.request(account, { media: [picture()] }));
      assert.equal(outcome.kind, 'deferred', 'the address is none, and the post waits');
    }
  });

  t('a post of another time with the same text is none of a call', async () => {
    const account = await world.organization();
    await world.publish(world.request(account, { content: 'Every day' }));
    world.network.state.advance(3_600_000);
    world.network.script({ route: create, then: 'drop_before' });
    const request = world.request(account, { content: 'Every day' });
    const { outcome, steps } = await world.publish(request);
    assert.equal(outcome.kind, 'unknown');
    world.network.state.advance(3_600_000);
    assert.equal((await world.publish(world.request(account, { content: 'Every day' }))).outcome.kind, 'published');
    assert.equal((await world.adapter.reconcile(request, steps.crossed)).kind, 'absent');
  });

  t('a lost post of a member is unknown for ever: nobody is asked, and no second call probes for it', async () => {
    const account = await world.member();
    for (const then of ['drop_after', 'drop_before'] as const) {
      world.network.script({ route: create, then });
      const request = world.request(account, { content: randomUUID() });
      const { outcome, steps } = await world.publish(request);
      assert.equal(outcome.kind, 'unknown');
      const calls = world.network.state.calls.length;
      for (let at = 0; at < 3; at += 1) {
        const seen = await world.adapter.reconcile(request, steps.crossed);
        assert.ok(seen.kind === 'undecided');
        assert.match(seen.failure?.platformMessage ?? '', /look at the profile/);
      }
      const found = await world.adapter.findPosts({
        ...{ ...request, from: '2026-01-01T00:00:00.000Z', until: '2027-12-31T00:00:00.000Z' },
      });
      assert.equal(found.kind, 'not_askable');
      assert.equal(world.network.state.calls.length, calls, 'nothing was asked');
    }
  });

  t('a refusal of a duplicate names another post, and is never taken for ours', async () => {
    const account = await world.member();
    const asked = world.request(account);
    world.network.script({ route: create, then: 'drop_after' });
    const { steps } = await world.publish(asked);
    const second = await again(asked, steps);
    assert.ok(second.outcome.kind === 'failed');
    assert.equal(second.outcome.failure.category, 'duplicate');
    assert.match(second.outcome.failure.platformMessage ?? '', /duplicate of urn:li:share:\d+/);
    assert.equal(second.outcome.failure.platformCode, 'DUPLICATE_POST');
  });

  t('an answer without an id is unknown, and an id in the older header is one', async () => {
    const account = await world.organization();
    world.network.script({ route: create, then: { answerAfter: { status: 201 } } });
    const lost = world.request(account, { content: 'No id' });
    const { outcome, steps } = await world.publish(lost);
    assert.equal(outcome.kind, 'unknown');
    assert.equal((await world.adapter.reconcile(lost, steps.crossed)).kind, 'present');
    const headers = { 'x-linkedin-id': 'urn%3Ali%3AugcPost%3A7240000000000000009' };
    world.network.script({ route: create, then: { answer: { status: 201, headers } } });
    const older = await world.publish(world.request(account, { content: 'Older' }));
    assert.ok(older.outcome.kind === 'published');
    assert.equal(older.outcome.externalId, 'urn:li:ugcPost:7240000000000000009');
  });

  t('CONNECTIONS is for members: an organization’s post is refused before anything is called', async () => {
    const account = await world.organization();
    const overrides = { visibility: 'CONNECTIONS' };
    const { outcome } = await world.publish(world.request(account, { overrides, media: [picture()] }));
    assert.ok(outcome.kind === 'failed' && outcome.failure.category === 'invalid_content');
    assert.equal(world.network.state.calls.length, 0);
    const member = await world.member();
    assert.equal((await world.publish(world.request(member, { overrides }))).outcome.kind, 'published');
    assert.equal(world.network.state.posts.at(-1)?.visibility, 'CONNECTIONS');
  });

  t('a video goes up in parts whose ETags finish it, and a worker that lost its way goes on', async () => {
    const request = world.request(await world.organization(), { media: [video()] });
    world.network.script({ route: 'PUT /dms-uploads/video', says: '-1?', then: { answer: problems.unavailable } });
    const first = await world.publish(request);
    assert.ok(first.outcome.kind === 'deferred', JSON.stringify(first.outcome));
    assert.equal(first.outcome.failure.mediaId, request.media[0]?.mediaId);
    const kept = JSON.stringify(first.steps.checkpoints);
    assert.ok(kept.includes('urn:li:video:') && !kept.includes('signature') && !kept.includes('dms-uploads'), kept);
    const second = await again(request, first.steps);
    assert.equal(second.outcome.kind, 'published', JSON.stringify(second.outcome));
    const [made] = [...world.network.state.files.values()];
    assert.deepEqual([made?.received, world.network.state.files.size], [videoBytes, 1], 'no part went up twice');
    assert.equal(counted(world, 'POST /rest/videos'), 2, 'initialized and finalized once');
    assert.equal(second.steps.bytes, videoBytes - 4 * 1024 * 1024);
    assert.match(second.outcome.kind === 'published' ? second.outcome.externalId : '', /^urn:li:ugcPost:/);
  });

  t('a finalize whose answer was lost is not made again, and where members see no state it is no fault', async () => {
    for (const showsFiles of [true, false]) {
      const own = await linkedinWorld({ showsFiles });
      const request = own.request(await own.member(), { media: [video()] });
      own.network.script({ route: 'POST /rest/videos', says: 'finalizeUpload', then: 'drop_after' });
      const first = await own.publish(request);
      assert.equal(first.outcome.kind, 'deferred');
      // Where its state is not shown it goes on being processed.
      const [made] = [...own.network.state.files.values()];
      if (!showsFiles && made !== undefined) made.status = 'AVAILABLE';
      const second = await own.publish({ ...request, attempt: 2, checkpoints: first.steps.checkpoints });
      assert.equal(second.outcome.kind, 'published', JSON.stringify(second.outcome));
      assert.equal(counted(own, 'POST /rest/videos'), showsFiles ? 2 : 3);
      assert.deepEqual(own.pauses.includes(20_000), !showsFiles);
      own.network.close();
    }
  });

  t('a member who may not see the state of a file waits a little, and the post says what is missing', async () => {
    const own = await linkedinWorld({ showsFiles: false, processing: { image: ['PROCESSING', 'AVAILABLE'] } });
    const request = own.request(await own.member(), { media: [picture()] });
    const first = await own.publish(request);
    assert.ok(first.outcome.kind === 'nothing_sent' && first.outcome.failure.category === 'transient');
    assert.deepEqual(own.pauses, [3_000]);
    for (const one of own.network.state.files.values()) one.status = 'AVAILABLE';
    const second = await own.publish({ ...request, attempt: 2, checkpoints: first.steps.checkpoints });
    assert.equal(second.outcome.kind, 'published');
    assert.equal(own.network.state.files.size, 1);
    own.network.close();
  });

  t('a file that LinkedIn cannot process fails with its reason; one that takes long is waited for', async () => {
    world.network.state.processing = { ...world.network.state.processing, video: ['PROCESSING', 'PROCESSING_FAILED'] };
    const account = await world.organization();
    const { outcome } = await world.publish(world.request(account, { media: [video()] }));
    assert.ok(outcome.kind === 'failed' && outcome.failure.category === 'media');
    assert.equal(outcome.failure.platformMessage, 'The codec is not supported');
    assert.equal(outcome.failure.platformCode, 'PROCESSING_FAILED');
    const states = [...Array.from({ length: 30 }, () => 'PROCESSING' as const), 'AVAILABLE' as const];
    world.network.state.processing = { ...world.network.state.processing, video: states };
    assert.equal((await world.publish(world.request(account, { media: [video()] }))).outcome.kind, 'published');
    assert.deepEqual(new Set(world.pauses), new Set([5_000]));
  });

  t('an address that has ended defers the post, and the next attempt asks for another', async () => {
    const account = await world.member();
    for (const answer of [problems.upload_expired, { status: 403, body: '' }, { status: 410, body: '' }]) {
      const asked = world.request(account, { content: randomUUID(), media: [picture()] });
      world.network.script({ route: 'PUT /dms-uploads/image', then: { answer } });
      const { outcome, steps } = await world.publish(asked);
      assert.ok(outcome.kind === 'deferred', JSON.stringify(outcome));
      assert.equal(outcome.failure.mediaId, asked.media[0]?.mediaId);
      const files = world.network.state.files.size;
      assert.equal((await again(asked, steps)).outcome.kind, 'published');
      assert.equal(world.network.state.files.size, files + 1);
    }
    const kept = world.request(account, { content: randomUUID(), media: [video()] });
    world.network.script({ route: 'PUT /dms-uploads/video', says: '-2?', then: 'drop_before' });
    const { steps } = await world.publish(kept);
    world.network.state.advance(3 * 3_600_000);
    assert.equal((await again(kept, steps)).outcome.kind, 'published', 'the addresses had ended by then');
  });

  t('what LinkedIn says of the parts of a video has bounds', async () => {
    const account = await world.organization();
    const video202 = (uploadInstructions: unknown) => ({
      status: 200,
      body: { value: { video: 'urn:li:video:C4E1', uploadToken: '', uploadInstructions, uploadUrlsExpireAt: 4e12 } },
    });
    const part = (firstByte: number, lastByte: number) => ({
      uploadUrl: `${world.network.origin}/x`,
      firstByte,
      lastByte,
    });
    for (const instructions of [
      [],
      'many',
      [part(0, 10)],
      [part(5, videoBytes - 1)],
      [part(0, 99), part(50, videoBytes - 1)],
      [{ ...part(0, videoBytes - 1), uploadUrl: 7 }],
      Array.from({ length: 5_000 }, (_, at) => part(at * 1_800, at * 1_800 + 1_799)),
    ]) {
      world.network.script({ route: 'POST /rest/videos', then: { answer: video202(instructions) } });
      const { outcome } = await world.publish(world.request(account, { media: [video()] }));
      assert.equal(outcome.kind, 'deferred', JSON.stringify(instructions).slice(0, 100));
    }
    assert.equal(counted(world, 'PUT'), 0);
  });

  t(
    'a page that is down, or says nothing, makes a post without a card; a picture that fails a card without one',
    async () => {
      const account = await world.organization();
      const { outcome } = await world.publish(world.request(account, { content: 'See http://127.0.0.1:9/gone' }));
      assert.equal(outcome.kind, 'published');
      assert.equal(world.network.state.posts.at(-1)?.content, null);
      const withFile = world.request(account, { content: 'See http://127.0.0.1:9/gone', media: [picture()] });
      const calls = world.http.calls.length;
      assert.equal((await world.publish(withFile)).outcome.kind, 'published');
      assert.ok(
        !world.http.calls.slice(calls).some(({ url }) => url.includes('gone')),
        'files take the place of a card',
      );
    },
  );

  t('a token with few minutes left is refreshed before it is used, and the refresh token keeps its end', async () => {
    const account = await world.member();
    const first = await world.credentials.read(account.id);
    const consentEnds = world.network.state.now() + 365 * 86_400_000;
    world.network.state.advance(60 * 86_400_000 - 200_000);
    assert.equal((await world.publish(world.request(account))).outcome.kind, 'published');
    assert.deepEqual(routesOf(world), ['POST /oauth/v2/accessToken', create]);
    const second = await world.credentials.read(account.id);
    assert.equal(second?.version, 2);
    assert.equal(second?.secret.refreshToken, first?.secret.refreshToken);
    assert.ok(Math.abs(Date.parse(second?.expiresAt ?? '') - consentEnds) < 10_000, String(second?.expiresAt));
    world.network.state.access.delete(String(second?.secret.accessToken));
    const next = await world.publish(world.request(account, { content: 'Again' }));
    assert.equal(next.outcome.kind, 'published');
    assert.equal(next.steps.log.filter((one) => one === 'boundary').length, 1);
  });

  t('an app without refresh tokens works to the end of the token, and asks for a new consent then', async () => {
    const own = await linkedinWorld({ givesRefresh: false });
    const account = await own.member();
    own.network.state.advance(60 * 86_400_000 - 400_000);
    assert.equal((await own.publish(own.request(account))).outcome.kind, 'published');
    const kept = await own.credentials.read(account.id);
    assert.ok(kept !== null && own.refresher !== undefined && (own.refreshWindowMs ?? 0) <= 600_000);
    own.network.state.advance(400_000);
    const { outcome, steps } = await own.publish(own.request(account, { content: 'Later' }));
    assert.ok(outcome.kind === 'failed' && outcome.failure.category === 'reauth_required');
    assert.ok(!steps.log.includes('boundary'));
    assert.equal(counted(own, 'POST /oauth'), 0);
    own.network.close();
  });

  t(
    'a network that is down while a file is uploaded makes the post wait; one that is gone at the boundary sends nothing',
    async () => {
      const account = await world.member();
      for (const then of ['drop_before', { answer: problems.unavailable }] as const) {
        world.network.script({ route: 'POST /rest/images', then });
        const { outcome, steps } = await world.publish(world.request(account, { media: [picture()] }));
        assert.ok(outcome.kind === 'deferred' && outcome.failure.category === 'platform_down');
        assert.ok(!steps.log.includes('boundary'));
      }
      const request = world.request(account);
      const steps = new RecordedSteps(request, world.adapter.boundaryDeadlineMs);
      steps.atBoundary = () => world.network.close();
      assert.equal((await world.adapter.publish(request, steps)).kind, 'nothing_sent');
    },
  );
});
