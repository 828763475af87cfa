import { deepEqual, equal, match, ok, rejects } from 'node:assert/strict';
import { fork } from 'node:child_process';
import { createHash, randomUUID } from 'node:crypto';
import { getEventListeners, once } from 'node:events';
import { readFile, writeFile } from 'node:fs/promises';
import path from 'node:path';
import pg from 'pg';
import { platformSuite, RecordedSteps } from '#contracts/ports/platform.suite.ts';
import type { PublishMedia, PublishRequest } from '#contracts/ports/platform.ts';
import { afterStepSuite } from '#contracts/ports/platform-after-step.suite.ts';
import { nativeSuite } from '#contracts/ports/platform-native.suite.ts';
import { processingSuite } from '#contracts/ports/platform-processing.suite.ts';
import { capabilities, rules } from '#domain/platforms/index.ts';
import { faultsOf, SandboxNetwork, type SandboxOptions, sandboxProfile } from '#infra/platforms/sandbox/index.ts';
import { type Platform, platforms } from '#schemas/common.ts';
import { clipForAdapter } from '#test/support/clip.ts';
import { type Clip, makeClip } from '#test/support/media/clips.ts';
import { mediaFolder } from '#test/support/media/folder.ts';
import { preparedDatabase } from '#test/support/postgres.ts';
import { suite } from '#test/support/suite.ts';
import { until } from '#test/support/until.ts';

const required = (platform: Platform) =>
  platform === 'tiktok' ? { privacyLevel: 'SELF_ONLY' } : platform === 'pinterest' ? { boardId: '1' } : {};
let clips: PublishMedia;
/** Files without which a network publishes nothing. */
const neededNow = (platform: Platform): readonly PublishMedia[] =>
  capabilities(platform).textOnly ? [] : [{ ...clips, use: platform === 'instagram' ? 'reel' : 'feed' }];
const needed = async (platform: Platform): Promise<readonly PublishMedia[]> => {
  clips ??= await clipForAdapter();
  return neededNow(platform);
};
const account = (platform: Platform, username = 'acme') => {
  const { externalId, scopes } = sandboxProfile(platform, username);
  return { id: randomUUID(), externalId, username, scopes };
};
/** Networks on which a comment needs a permission of its own. */
const asking: readonly Platform[] = ['instagram', 'facebook', 'youtube'];
const short = { boundaryDeadlineMs: 400, pollMs: 20 } as const;

/** One network in a database of its own, for the suites of the port. */
const harness = async () => {
  const db = await preparedDatabase();
  const opened: SandboxNetwork[] = [];
  const open = async () => {
    const network = new SandboxNetwork({ database: { url: db.url, connections: 4 }, ...short });
    opened.push(network);
    return network;
  };
  const reader = await open();
  for (const platform of platforms) await reader.endVersion(platform, '202511');
  const ended = async () => {
    const versions = Object.fromEntries(platforms.map((platform) => [platform, '202511']));
    const old = new SandboxNetwork({ database: { url: db.url, connections: 4 }, ...short, versions });
    opened.push(old);
    return old;
  };
  return {
    ended,
    open,
    close: async () => {
      await Promise.all(opened.map((network) => network.close()));
      await db.drop();
    },
    posts: async (targetId: string) =>
      (await reader.creates(targetId)).flatMap(({ outcome, postId }) =>
        outcome === 'created' && postId ? [postId] : [],
      ),
    comments: async (targetId: string) =>
      (await reader.comments([targetId])).flatMap(({ outcome, commentId }) =>
        outcome === 'created' && commentId ? [commentId] : [],
      ),
    scripted: (fault: string, ms?: number) => `Hi [[sandbox:${fault} once${ms === undefined ? '' : ` ${ms}ms`}]]`,
    processed: (end: 'shown' | 'refused', ms: number) =>
      `Look [[sandbox:${end === 'shown' ? 'processing' : 'processing_failed'} ${ms}ms]]`,
    cover: async (): Promise<PublishMedia> => {
      clips ??= await clipForAdapter();
      const sha256 = createHash('sha256').update(randomUUID()).digest('hex');
      return { ...clips, kind: 'image', use: 'cover', sha256 };
    },
    covers: async (targetId: string) =>
      (await reader.afterSteps([targetId])).flatMap(({ outcome, sha256 }) => (outcome === 'done' ? [sha256] : [])),
    scriptedAfter: (fault: string, ms?: number) =>
      `Hi [[sandbox:cover_${fault} once${ms === undefined ? '' : ` ${ms}ms`}]]`,
    coverless: (platform: Platform) => account(platform, 'no-covers-acme'),
    platforms,
    account: (platform: Platform) => account(platform),
    unproven: async (platform: Platform) => {
      if (platform !== 'tiktok') return null;
      clips ??= await clipForAdapter();
      const picture = { ...clips, kind: 'image', use: 'feed', durationMs: null } as const;
      return { content: 'Hi [[sandbox:address_unproven once]]', media: [picture] };
    },
    dayLimited: (platform: Platform) => account(platform, 'day-limit-acme'),
    silent: (platform: Platform) => (asking.includes(platform) ? account(platform, 'no-comments-acme') : null),
    unreadable: (platform: Platform) => (platform === 'linkedin' ? account(platform, 'member-acme') : null),
    overrides: required,
    media: needed,
    says: async (targetId: string, content: string) => {
      const made = (await reader.creates(targetId)).filter(({ outcome }) => outcome === 'created');
      return made.length === 1 && made[0]?.content === content;
    },
    now: async () => (await reader.now()).getTime(),
    pass: (ms: number) => reader.advance(ms),
  };
};

suite('sandbox network as a platform', { waits: true }, (t) => {
  platformSuite(t, harness);
});

suite('sandbox network that looks at posts', { waits: true }, (t) => {
  processingSuite(t, harness);
});

suite('sandbox network that takes covers behind the publication', { waits: true }, (t) => {
  afterStepSuite(t, async () => {
    clips ??= await clipForAdapter();
    return { ...(await harness()), media: async () => [{ ...clips, use: 'feed' }] };
  });
});

suite('sandbox network as a scheduler', (t) => {
  nativeSuite(t, harness);
});

suite('sandbox network', (t) => {
  let db: Awaited<ReturnType<typeof preparedDatabase>>;
  const opened: SandboxNetwork[] = [];
  const open = async (options: Partial<SandboxOptions> = {}) => {
    const network = new SandboxNetwork({ database: { url: db.url, connections: 4 }, ...short, ...options });
    opened.push(network);
    return network;
  };
  let network: SandboxNetwork;
  t.before(async () => {
    db = await preparedDatabase();
    clips = await clipForAdapter();
    network = await open();
  });
  t.after(async () => {
    await Promise.all(opened.map((one) => one.close()));
    await db?.drop();
  });

  const workspaceId = randomUUID();
  const request = (platform: Platform, over: Partial<PublishRequest> = {}): PublishRequest => ({
    workspaceId,
    targetId: randomUUID(),
    attempt: 1,
    platform,
    account: account(platform),
    content: 'Good morning',
    overrides: required(platform),
    aiDisclosure: false,
    media: neededNow(platform),
    cover: null,
    coverFrameMs: null,
    thread: null,
    checkpoints: [],
    ...over,
  });
  const publish = async (asked: PublishRequest, by = network) => {
    const steps = new RecordedSteps(asked, by.boundaryDeadlineMs);
    return { steps, outcome: await by.publish(asked, steps) };
  };

  t('ids and URLs have the form of each network', async () => {
    const shapes: Readonly<Record<Platform, readonly [RegExp, RegExp]>> = {
      x: [/^\d{19}$/, /^https:\/\/x\.com\/acme\/status\/\d{19}$/],
      instagram: [/^\d{17}$/, /^https:\/\/www\.instagram\.com\/p\/D[\w-]{10}\/$/],
      tiktok: [/^7\d{18}$/, /^https:\/\/www\.tiktok\.com\/@acme\/video\/7\d{18}$/],
      youtube: [/^[\w-]{11}$/, /^https:\/\/www\.youtube\.com\/watch\?v=[\w-]{11}$/],
      facebook: [/^\d{15}_\d{15}$/, /^https:\/\/www\.facebook\.com\/\d+_\d+$/],
      linkedin: [/^urn:li:share:\d{19}$/, /^https:\/\/www\.linkedin\.com\/feed\/update\/urn:li:share:\d{19}\/$/],
      threads: [/^\d{17}$/, /^https:\/\/www\.threads\.com\/@acme\/post\/D[\w-]{10}$/],
      pinterest: [/^\d{18}$/, /^https:\/\/www\.pinterest\.com\/pin\/\d{18}\/$/],
      bluesky: [
        /^at:\/\/did:plc:[a-z2-7]{24}\/app\.bsky\.feed\.post\/[2-7a-z]{13}$/,
        /^https:\/\/bsky\.app\/profile\/did:plc:[a-z2-7]{24}\/post\/[2-7a-z]{13}$/,
      ],
      telegram: [/^-100\d{10}:\d+$/, /^https:\/\/t\.me\/acme\/\d+$/],
    };
    for (const platform of platforms) {
      const { outcome } = await publish(request(platform));
      ok(outcome.kind === 'published', platform);
      match(outcome.externalId, shapes[platform][0]);
      match(outcome.permalink ?? '', shapes[platform][1]);
      deepEqual(sandboxProfile(platform, 'acme'), sandboxProfile(platform, ' @Acme '));
    }
  });

  t('each network takes a comment in its own form; the ledger of comments keeps every call', async () => {
    const shapes = {
      x: ['reply', /^\d{19}$/],
      threads: ['reply', /^\d{17}$/],
      bluesky: ['reply', /^at:\/\/did:plc:[a-z2-7]{24}\/app\.bsky\.feed\.post\/3[2-7a-z]{12}$/],
      // In the chat of the post.
      telegram: ['reply', /^-100\d{10}:\d+$/],
      linkedin: ['comment', /^urn:li:comment:\(urn:li:share:\d{19},7\d{18}\)$/],
      instagram: ['comment', /^178\d{14}$/],
      facebook: ['comment', /^\d{15}_\d{15}$/],
      youtube: ['comment', /^Ug[\w-]{24}$/],
    } as const;
    for (const platform of platforms) {
      const asked = request(platform);
      const { outcome } = await publish(asked);
      ok(outcome.kind === 'published', platform);
      const { targetId, account: by } = asked;
      const { externalId } = outcome;
      const granted = { ...by, scopes: sandboxProfile(platform, 'acme').scopes };
      const said = (content: string) =>
        network.comment({ targetId, platform, account: granted, externalId, content }, AbortSignal.timeout(400));
      if (!capabilities(platform).firstComment) {
        await rejects(said('hi'), /takes no comments/);
        deepEqual(await network.comments([targetId]), []);
        continue;
      }
      const [form, shape] = shapes[platform as keyof typeof shapes];
      equal((await said('no [[sandbox:reject once]]')).kind, 'failed');
      const posted = await said('yes \0 [[sandbox:reject once]]');
      ok(posted.kind === 'posted', platform);
      match(posted.externalId, shape);
      if (platform === 'telegram') equal(posted.externalId.split(':')[0], externalId.split(':')[0]);
      const rows = await network.comments([targetId]);
      deepEqual(
        rows.map((row) => [row.platform, row.accountId, row.postId, row.form, row.outcome, row.commentId, row.refusal]),
        [
          [platform, by.id, externalId, form, 'refused', null, 'content_rejected'],
          [platform, by.id, externalId, form, 'created', posted.externalId, null],
        ],
      );
      equal(rows[1]?.content, 'yes \ufffd [[sandbox:reject once]]');
    }
    deepEqual(await network.duplicateComments(), []);
  });

  t('an account that did not grant the permission to comment is named so', () => {
    deepEqual(sandboxProfile('instagram', 'acme').scopes, ['sandbox.publish', 'sandbox.read', 'sandbox.comment']);
    deepEqual(sandboxProfile('instagram', 'No-Comments-acme').scopes, ['sandbox.publish', 'sandbox.read']);
  });

  t(
    'a private tiktok account allows other privacy levels than a public one, and the network holds to them',
    async () => {
      const levels = (username: string) =>
        sandboxProfile('tiktok', username)
          .scopes.filter((one) => one.startsWith('privacy_level.'))
          .map((one) => one.slice('privacy_level.'.length));
      deepEqual(levels('acme'), ['PUBLIC_TO_EVERYONE', 'MUTUAL_FOLLOW_FRIENDS', 'SELF_ONLY']);
      deepEqual(levels('private-acme'), ['FOLLOWER_OF_CREATOR', 'MUTUAL_FOLLOW_FRIENDS', 'SELF_ONLY']);
      deepEqual(levels('privateer'), levels('acme'));
      deepEqual(sandboxProfile('x', 'private-acme').scopes, sandboxProfile('x', 'acme').scopes);
      const asked = (username: string) =>
        publish(
          request('tiktok', {
            account: account('tiktok', username),
            overrides: { privacyLevel: 'PUBLIC_TO_EVERYONE' },
          }),
        );
      equal((await asked('acme')).outcome.kind, 'published');
      const { outcome } = await asked('private-acme');
      deepEqual([outcome.kind, outcome.kind === 'failed' && outcome.failure.code], ['failed', 'override_not_granted']);
    },
  );

  t('the ledger keeps every create call in order', async () => {
    const asked = request('instagram', { content: 'a [[sandbox:error_after once]]' });
    const before = Date.now();
    const first = await publish(asked);
    const second = await publish({ ...asked, attempt: 2, checkpoints: first.steps.checkpoints });
    equal(second.outcome.kind, 'published');
    const rows = await network.creates(asked.targetId);
    deepEqual(
      rows.map(({ outcome, attempt, key }) => [outcome, attempt, key]),
      [
        ['created', 1, rows[0]?.key],
        ['repeated', 2, rows[0]?.key],
      ],
    );
    equal(rows[0]?.postId, rows[1]?.postId);
    equal(rows[0]?.accountId, asked.account.id);
    equal(rows[0]?.content, asked.content);
    deepEqual(rows[0]?.overrides, asked.overrides);
    ok(
      (rows[0]?.callStartedAt.getTime() ?? 0) >= before &&
        (rows[1]?.seenAt.getTime() ?? 0) >= (rows[0]?.seenAt.getTime() ?? 0),
    );
    deepEqual(await network.ledger({ accountIds: [asked.account.id], platform: 'instagram' }), rows);
    const client = new pg.Client({ connectionString: db.url });
    await client.connect();
    try {
      await rejects(client.query('delete from sandbox.ledger'), /append-only/);
      await rejects(client.query('update sandbox.ledger set attempt = 7'), /append-only/);
    } finally {
      await client.end();
    }
  });

  t('a segment of a thread is a post of its own that replies to a visible post of its account', async () => {
    const head = request('x', { content: 'head', thread: { index: 0, of: 2, replyTo: null } });
    const first = await publish(head);
    ok(first.outcome.kind === 'published');
    const id = first.outcome.externalId;
    const reply = { ...head, content: 'reply', thread: { index: 1, of: 2, replyTo: { parent: id, head: id } } };
    const second = await publish(reply);
    equal(second.outcome.kind, 'published');
    deepEqual(
      (await network.creates(head.targetId)).map((row) => [row.segment, row.replyTo, row.duplicateOf]),
      [
        [0, null, null],
        [1, id, null],
      ],
    );
    const nowhere = { parent: '1', head: '1' };
    const lost = await publish({ ...reply, targetId: randomUUID(), thread: { index: 1, of: 2, replyTo: nowhere } });
    ok(lost.outcome.kind === 'failed' && lost.outcome.failure.category === 'invalid_content');
    const strange = { ...reply, targetId: randomUUID(), account: { ...reply.account, id: randomUUID() } };
    equal((await publish(strange)).outcome.kind, 'failed');
    ok(!(await network.duplicates()).some(({ targetId }) => targetId === head.targetId));
  });

  t('the sandbox reports duplicates, and nothing else as a duplicate', async () => {
    const asked = request('x');
    const first = await publish(asked);
    const second = await publish({ ...asked, attempt: 2, checkpoints: first.steps.checkpoints });
    ok(first.outcome.kind === 'published' && second.outcome.kind === 'published');
    const [row] = (await network.duplicates()).filter(({ targetId }) => targetId === asked.targetId);
    deepEqual(row?.posts, [first.outcome.externalId, second.outcome.externalId]);
    equal((await network.creates(asked.targetId))[1]?.duplicateOf, first.outcome.externalId);
    const keyed = request('bluesky');
    await publish(keyed);
    await publish({ ...keyed, attempt: 2 });
    ok(!(await network.duplicates()).some(({ targetId }) => targetId === keyed.targetId));
  });

  t('twenty concurrent create calls with one key make one post', async () => {
    for (const platform of ['bluesky', 'threads', 'youtube'] as const) {
      const asked = request(platform);
      const first = new RecordedSteps(asked, short.boundaryDeadlineMs);
      first.refuse = 'boundary';
      await rejects(network.publish(asked, first));
      const outcomes = await Promise.all(
        Array.from({ length: 20 }, (_, i) => publish({ ...asked, attempt: i + 2, checkpoints: first.checkpoints })),
      );
      const ids = new Set(
        outcomes.map(({ outcome }) => (outcome.kind === 'published' ? outcome.externalId : outcome.kind)),
      );
      equal(ids.size, 1, platform);
      const rows = await network.creates(asked.targetId);
      equal(rows.filter(({ outcome }) => outcome === 'created').length, 1, platform);
      equal(rows.filter(({ outcome }) => outcome === 'repeated').length, 19, platform);
    }
  });

  t('containers: checkpoint before polling, slow processing, resumed by the next worker', async () => {
    for (const platform of platforms) {
      const { handle } = rules[platform].publish;
      if (handle !== 'container' && handle !== 'upload') continue;
      const asked = request(platform, { content: 'a [[sandbox:slow once 300ms]]' });
      const steps = new RecordedSteps(asked, short.boundaryDeadlineMs);
      steps.refuse = 'boundary';
      const started = performance.now();
      await rejects(network.publish(asked, steps), /claim lost/);
      ok(performance.now() - started >= 290, 'not before it is ready');
      deepEqual(steps.log, [`${handle}:begin`, `${handle}:end`, 'boundary']);
      const other = await open();
      const again = await publish({ ...asked, attempt: 2, checkpoints: steps.checkpoints }, other);
      equal(again.outcome.kind, 'published');
      deepEqual(again.steps.log, ['boundary'], 'the same container');
      equal(
        (await network.creates(asked.targetId))[0]?.key,
        (steps.checkpoints[0]?.data as { id: string } | undefined)?.id,
      );
    }
  });

  t('a container that never becomes ready defers the attempt; a stopped worker ends its wait', async () => {
    const impatient = await open({ processingLimitMs: 100 });
    const asked = request('instagram', { content: 'a [[sandbox:slow 5s]]' });
    const { outcome, steps } = await publish(asked, impatient);
    ok(outcome.kind === 'deferred' && outcome.failure.code === 'processing_timeout');
    ok(!steps.log.includes('boundary'));
    for (const platform of ['instagram', 'x'] as const) {
      const stopped = request(platform, { content: 'a [[sandbox:slow 60s]]' });
      const recorded = new RecordedSteps(stopped, short.boundaryDeadlineMs);
      const refused = rejects(network.publish(stopped, recorded));
      await until('it waits for the network', async () => getEventListeners(recorded.signal, 'abort').length > 0);
      recorded.worker.abort(new Error('lease lost'));
      await refused;
      ok(!recorded.log.includes('boundary'));
    }
  });

  t('a text that changes after its container: a new container before the boundary, a refusal after it', async () => {
    const asked = request('threads');
    const steps = new RecordedSteps(asked, short.boundaryDeadlineMs);
    steps.refuse = 'boundary';
    await rejects(network.publish(asked, steps));
    const revised = { ...asked, attempt: 2, content: 'Better', checkpoints: steps.checkpoints };
    equal((await publish(revised)).outcome.kind, 'published');

    const crossed = request('threads', { content: 'a [[sandbox:timeout_before once]]' });
    const first = await publish(crossed);
    const { outcome } = await publish({
      ...crossed,
      attempt: 2,
      content: 'Better',
      checkpoints: first.steps.checkpoints,
    });
    ok(outcome.kind === 'failed' && outcome.failure.code === 'content_changed');

    const made = request('threads', { content: 'a [[sandbox:error_after once]]' });
    const { steps: known } = await publish(made);
    const out = await publish({ ...made, attempt: 2, content: 'Better', checkpoints: known.checkpoints });
    equal(out.outcome.kind, 'published', 'a text that is out is said to be out');
    deepEqual(
      (await network.creates(made.targetId)).map((row) => row.outcome),
      ['created', 'repeated'],
    );
  });

  t('a worker that hung past its deadline makes no call', async () => {
    const asked = request('linkedin', { content: 'a [[sandbox:hang once 600ms]]' });
    const { outcome } = await publish(asked);
    equal(outcome.kind, 'nothing_sent');
    // A late call would stand in the ledger before these calls, which follow it on every line.
    const brief = () => publish(request('linkedin', { content: 'a [[sandbox:hang once 50ms]]' }));
    for (const later of await Promise.all(Array.from({ length: 8 }, brief))) equal(later.outcome.kind, 'published');
    deepEqual(await network.creates(asked.targetId), []);
  });

  t('reconcile is undecided while the network cannot be read, then finds the post', async () => {
    const asked = request('pinterest', { content: 'a [[sandbox:error_after once]] [[sandbox:unreadable 2x]]' });
    const { steps } = await publish(asked);
    const kinds: string[] = [];
    for (let i = 0; i < 3; i += 1) kinds.push((await network.reconcile(asked, steps.crossed)).kind);
    deepEqual(kinds, ['undecided', 'undecided', 'present']);
    const gone = { attempt: 1, step: 'boundary', data: null, deadline: null };
    equal((await network.reconcile(asked, gone)).kind, 'undecided', 'a boundary without a key tells nothing');
    const never = request('telegram', { content: 'a [[sandbox:timeout_before once]]' });
    const { steps: silent } = await publish(never);
    equal(
      (await network.reconcile(never, silent.crossed)).kind,
      'undecided',
      'a bot cannot see that a post is not there',
    );
  });

  t('the network enforces its own rules', async () => {
    const table: readonly [Platform, Partial<PublishRequest>, string][] = [
      ['x', { content: 'a'.repeat(281) }, 'text_too_long'],
      ['bluesky', { content: '😀'.repeat(301) }, 'text_too_long'],
      ['tiktok', { overrides: {} }, 'tiktok_privacy_level_required'],
      ['pinterest', { overrides: {} }, 'pinterest_board_required'],
      ['youtube', { content: '' }, 'youtube_title_required'],
    ];
    for (const [platform, over, code] of table) {
      const asked = request(platform, over);
      const { outcome } = await publish(asked);
      ok(outcome.kind === 'failed' && outcome.failure.code === code, `${platform} ${JSON.stringify(outcome)}`);
      ok((await network.creates(asked.targetId)).every((row) => row.outcome === 'refused'));
    }
  });

  t('a network that takes every container recognises each by its bytes', async () => {
    const folder = mediaFolder();
    const small = { width: 160, height: 120, seconds: 0.5 };
    const clip = async (container: NonNullable<Clip['container']>, over: Clip = {}) =>
      readFile(await makeClip(folder, { ...small, container, ...over }));
    const mov = await clip('mov');
    /** As files are that were made before there was a type box. */
    const oldMov = (first: string) => {
      const bytes = Buffer.from(mov);
      bytes.write(first, 4, 'latin1');
      return bytes;
    };
    const streamable = await clip('mov', { streamable: true });
    const typeBytes = streamable.readUInt32BE(0);
    const dataAt = typeBytes + streamable.readUInt32BE(typeBytes);
    const gap = Buffer.from(streamable.subarray(0, typeBytes));
    gap.write('free', 4, 'latin1');
    // The index, then a gap where the type box would be missed: what the index points at stays where it is.
    const indexFirst = Buffer.concat([streamable.subarray(typeBytes, dataAt), gap, streamable.subarray(dataAt)]);
    const table: readonly (readonly [name: string, body: Buffer, contentType: string])[] = [
      ['mp4', await clip('mp4'), 'video/mp4'],
      ['mov', mov, 'video/quicktime'],
      ['mov moov', indexFirst, 'video/quicktime'],
      ...['wide', 'free', 'skip', 'mdat'].map((first) => [`mov ${first}`, oldMov(first), 'video/quicktime'] as const),
      ['webm', await clip('webm', { codec: 'vp9' }), 'video/webm'],
      ['matroska', await clip('mkv'), 'video/x-matroska'],
      ['avi', await clip('avi', { codec: 'mpeg4' }), 'video/x-msvideo'],
      ['mpegts', await clip('ts'), 'video/mp2t'],
    ];
    const lend = async (name: string, body: Buffer, contentType: string): Promise<PublishMedia> => {
      const file = path.join(folder, name);
      await writeFile(file, body);
      const sha256 = createHash('sha256').update(body).digest('hex');
      const about = { contentType, bytes: body.length, sha256, width: 160, height: 120, durationMs: 500 };
      return { ...clips, ...about, file: async () => file };
    };
    for (const [name, body, contentType] of table) {
      const asked = request('youtube', { media: [await lend(name, body, contentType)] });
      const { outcome } = await publish(asked);
      equal(outcome.kind, 'published', `${name} ${JSON.stringify(outcome)}`);
      const [row] = await network.creates(asked.targetId);
      const [given] = row?.media ?? [];
      deepEqual([given?.contentType, given?.width, given?.height], [contentType, 160, 120], name);
      const other = contentType === 'video/mp4' ? 'video/webm' : 'video/mp4';
      const lied = request('youtube', { media: [await lend(name, body, other)] });
      equal((await publish(lied)).outcome.kind, 'failed', `${name} said to be ${other}`);
      if (contentType === 'video/mp4' || contentType === 'video/quicktime') continue;
      const elsewhere = request('x', { media: asked.media });
      equal((await publish(elsewhere)).outcome.kind, 'failed', `${name} where only MP4 and MOV are taken`);
    }
  });

  t('hostile text is published like any other', async () => {
    for (const platform of ['x', 'threads'] as const) {
      const asked = request(platform, { content: "a\0b \ud800 # $1 '; --", overrides: { nul: 'a\0', lone: '\udfff' } });
      equal((await publish(asked)).outcome.kind, 'published');
    }
  });

  t('faults strike once, n times, for a while, or by account', async () => {
    const twice = request('x', { content: 'a [[sandbox:rate_limit 2x 100ms]]' });
    const kinds: string[] = [];
    for (let i = 1; i <= 3; i += 1) kinds.push((await publish({ ...twice, attempt: i })).outcome.kind);
    deepEqual(kinds, ['rate_limited', 'rate_limited', 'published']);

    const away = request('x', { content: 'a [[sandbox:down 300ms]]' });
    equal((await publish(away)).outcome.kind, 'deferred');
    const end = performance.now() + 5000;
    let outcome = 'deferred';
    for (let i = 2; outcome === 'deferred' && performance.now() < end; i += 1) {
      outcome = (await publish({ ...away, attempt: i })).outcome.kind;
    }
    equal(outcome, 'published');

    const dead = request('threads', { account: account('threads', 'token-death-acme') });
    for (const attempt of [1, 2]) equal((await publish({ ...dead, attempt })).outcome.kind, 'failed');
    const limited = request('threads', { account: account('threads', 'rate-limit-once-acme') });
    equal((await publish(limited)).outcome.kind, 'rate_limited');
    equal((await publish({ ...limited, attempt: 2 })).outcome.kind, 'published');

    deepEqual(faultsOf('[[sandbox:late once 3s]] [[sandbox:nonsense]] [[sandbox:rate-limit 3x 1m]]', 'down-acme'), [
      { name: 'down', times: null, durationMs: null },
      { name: 'late', times: 1, durationMs: 3000 },
      { name: 'rate_limit', times: 3, durationMs: 60_000 },
    ]);
    deepEqual(faultsOf('plain', 'downtown'), []);
  });

  t('without its database the network is down: attempts are deferred before the boundary', async () => {
    const gone = new SandboxNetwork({ database: { url: 'postgres://nobody@127.0.0.1:1/none' }, ...short });
    opened.push(gone);
    const { outcome, steps } = await publish(request('x'), gone);
    ok(outcome.kind === 'deferred' && outcome.failure.category === 'platform_down');
    ok(!steps.log.includes('boundary'));
    const boundary = { attempt: 1, step: 'boundary', data: { key: 'k' }, deadline: null };
    equal((await gone.reconcile(request('x'), boundary)).kind, 'undecided');
  });

  t('a network that hangs: the outcome is unknown at the deadline, and the call takes effect later', async () => {
    const asked = request('x');
    const client = new pg.Client({ connectionString: db.url });
    await client.connect();
    try {
      await client.query('begin; lock table sandbox.ledger in access exclusive mode');
      const { outcome, steps } = await publish(asked);
      equal(outcome.kind, 'unknown');
      ok(performance.now() - steps.boundaryAt < short.boundaryDeadlineMs + 1500, 'the deadline lets go of the call');
      await client.query('rollback');
      const end = performance.now() + 5000;
      let seen = 'absent';
      while (seen !== 'present' && performance.now() < end) seen = (await network.reconcile(asked, steps.crossed)).kind;
      equal(seen, 'present');
    } finally {
      await client.end();
    }
  });

  t('connections cut while the boundary is appended: the outcome is unknown, and the process continues', async () => {
    const asked = request('x');
    const steps = new RecordedSteps(asked, 2000);
    const append = steps.boundary.bind(steps);
    steps.boundary = async (data) => {
      const client = new pg.Client({ connectionString: db.url });
      await client.connect();
      // Waits for each backend's end: one still dying would be handed to the next call too.
      await client.query(
        `select pg_terminate_backend(pid, 10000) from pg_stat_activity
         where application_name = 'sandbox network' and datname = current_database()`,
      );
      await client.end();
      return append(data);
    };
    equal((await network.publish(asked, steps)).kind, 'unknown');
    equal((await publish(request('x'))).outcome.kind, 'published');
  });

  t('after a kill at each gap the network has exactly the posts that it accepted', async () => {
    const child = new URL('./sandbox-worker.ts', import.meta.url);
    const table = [
      ['sandbox.container_created', 0],
      ['sandbox.container_checkpointed', 0],
      ['sandbox.boundary_appended', 0],
      ['sandbox.post_accepted', 1],
    ] as const;
    for (const [gap, posts] of table) {
      const asked = request('instagram');
      const worker = fork(child, [], {
        env: { ...process.env, SANDBOX_WORKER: JSON.stringify({ url: db.url, gap, asked }) },
      });
      const checkpoints: PublishRequest['checkpoints'][number][] = [];
      worker.on('message', (message) => checkpoints.push(message as PublishRequest['checkpoints'][number]));
      const [, signal] = await once(worker, 'exit');
      equal(signal, 'SIGKILL', gap);
      equal((await network.creates(asked.targetId)).length, posts, gap);
      const boundary = checkpoints.find(({ step }) => step === 'boundary');
      if (boundary !== undefined) {
        equal((await network.reconcile(asked, boundary)).kind, posts === 1 ? 'present' : 'absent', gap);
      }
      const next = await publish({ ...asked, attempt: 2, checkpoints });
      equal(next.outcome.kind, 'published', gap);
      const created = (await network.creates(asked.targetId)).filter(({ outcome }) => outcome === 'created');
      equal(created.length, 1, gap);
    }
  });
});
