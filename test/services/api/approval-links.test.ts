import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { testTwinIdOf } from '#domain/ids.ts';
import { workspace } from '#domain/workspace.ts';
import { execute } from '#runtime/eventing/execute.ts';
import { linkToken } from '#runtime/identity/link-token.ts';
import { contextOf, revokeApiKey } from '#services/workflows/provision.ts';
import { readyAsset } from '#test/support/assets.ts';
import { composedWorld, composer, refused } from '#test/support/composing.ts';
import { suite } from '#test/support/suite.ts';

const { world, tester } = await composedWorld(['x']);
const own = await composer(world, ['x', 'bluesky'], { name: 'Acme <b>& Söhne</b>' });
await tester.patch(`/clients/${own.clientId}`, { approvalRequired: true });

suite('approval links', (t) => {
  const submit = async (more: Record<string, unknown> = {}) => {
    const made = await tester.post('/posts', own.body(more));
    assert.equal(made.status, 200, made.text);
    return { postId: made.data.id, approvalId: String(made.data.approvalId) };
  };
  const mint = async (approvalId: string, body: object = {}, key = randomUUID()) => {
    const made = await tester.post(`/approvals/${approvalId}/links`, body, { key });
    assert.equal(made.status, 200, made.text);
    return made;
  };
  const page = (token: unknown) => fetch(`${world.origin()}/approval/${token}`);
  const send = (token: unknown, fields: Record<string, string>) =>
    fetch(`${world.origin()}/approval/${token}`, {
      ...{ method: 'POST', body: new URLSearchParams(fields), redirect: 'manual' },
    });
  const approvalOf = async (id: string) => {
    await world.settled();
    return (await tester.get(`/approvals/${id}`)).data;
  };
  /** A guest's decision is no write of the caller who asks. */
  const statusOf = async (postId: string) => {
    await world.settled();
    return (await tester.get(`/posts/${postId}`)).data.status;
  };

  t('is made for a pending request, for a week by default; a repeat shows the same', async () => {
    const { approvalId } = await submit();
    const key = randomUUID();
    const { data } = await mint(approvalId, {}, key);
    assert.equal(data.url, `${world.origin()}/approval/${data.token}`);
    assert.equal(Date.parse(String(data.expiresAt)) - Date.parse(String(data.createdAt)), 168 * 3_600_000);
    const again = await mint(approvalId, {}, key);
    assert.deepEqual(again.data, data);
    assert.equal(again.headers.get('idempotent-replayed'), 'true');
    const { rows } = await world.pool.query("select encode(data, 'escape') as data from es.events where stream = $1", [
      `approval-${approvalId}`,
    ]);
    assert.ok(
      rows.every((row) => !row.data.includes(String(data.token))),
      'an event holds the token',
    );
    for (const expiresInHours of [0, 721, 1.5]) {
      refused(await tester.post(`/approvals/${approvalId}/links`, { expiresInHours }), 422, 'validation_failed');
    }
  });

  t('shows of a post for tiktok whose account it is by its nickname, and what its author agrees to', async () => {
    const { id: mediaId } = await readyAsset(world.store, testTwinIdOf(world.workspaceId), 'image');
    const two = await composer(world, ['tiktok', 'bluesky'], { username: 'cafe-aurora' });
    await tester.patch(`/clients/${two.clientId}`, { approvalRequired: true });
    const shown = async (overrides: object): Promise<string> => {
      const variants = [{ platform: 'tiktok', overrides: { privacyLevel: 'PUBLIC_TO_EVERYONE', ...overrides } }];
      const made = await tester.post('/posts', two.body({ mediaIds: [mediaId], variants }));
      assert.equal(made.status, 200, made.text);
      return (await page((await mint(String(made.data.approvalId))).data.token)).text();
    };
    const usual = await shown({ brandedContent: false });
    assert.match(usual, /Cafe Aurora \(cafe-aurora\)/);
    const terms = [...usual.matchAll(/By posting, you agree to [^\n]*<\/p>/g)].map(([words]) =>
      words.replaceAll(/<[^>]+>/g, ''),
    );
    assert.deepEqual(terms, ['By posting, you agree to TikTok’s Music Usage Confirmation.']);
    assert.match(usual, /href="https:\/\/www\.tiktok\.com\/legal\/page\/global\/music-usage-confirmation\/en"/);
    const branded = (await shown({ brandedContent: true })).replaceAll(/<[^>]+>/g, '');
    assert.match(branded, /By posting, you agree to TikTok’s Branded Content Policy and Music Usage Confirmation\./);
  });

  t('is listed with its maker and its use, without its address', async () => {
    const { approvalId } = await submit();
    const [first, second] = [await mint(approvalId), await mint(approvalId)];
    assert.equal((await send(first.data.token, { decision: 'approve', name: 'Guest', comment: '' })).status, 303);
    await tester.delete(`/approvals/${approvalId}/links/${second.data.linkId}`);
    const { rows } = await tester.get(`/approvals/${approvalId}/links`);
    const shown = rows.map(({ linkId, url, token, isRevoked, decidedAt, createdBy }) => [
      ...[linkId, url, token, isRevoked, decidedAt !== null, (createdBy as { readonly id: string }).id],
    ]);
    assert.deepEqual(shown, [
      [second.data.linkId, null, null, true, false, world.testKey.id],
      [first.data.linkId, null, null, false, true, world.testKey.id],
    ]);
    const other = await world.agency('Another');
    refused(await other.tester.get(`/approvals/${approvalId}/links`), 404, 'not_found');
  });

  t('works while its maker may decide', async () => {
    const { approvalId, postId } = await submit();
    const { workspaceId } = world;
    const memberId = await world.memberOf(workspaceId, 'manager');
    const key = await world.keyOf(workspaceId, memberId, { mode: 'test' });
    const made = await key.caller.post(`/approvals/${approvalId}/links`, {});
    assert.equal(made.status, 200, made.text);
    await revokeApiKey(world.operator, workspaceId, key.id);
    assert.equal((await page(made.data.token)).status, 200, 'the key has ended, its member has not');
    const remove = { type: 'RemoveMember', memberId } as const;
    await execute(world.store, workspace, workspaceId, remove, contextOf(world.operator, workspaceId));
    const fields = { decision: 'approve', name: 'A guest', comment: '' };
    assert.equal((await send(made.data.token, fields)).status, 404);
    assert.equal(await statusOf(postId), 'pending_approval');
  });

  t('opening the page changes nothing, and shows texts, files and times as they go out', async () => {
    const { id: mediaId } = await readyAsset(world.store, testTwinIdOf(world.workspaceId), 'image');
    const { approvalId } = await submit({
      content: 'Line one\n<script>alert(1)</script>',
      ...{ mediaIds: [mediaId], mediaAltTexts: { [mediaId]: 'A "quoted" cat' } },
      variants: [{ platform: 'bluesky', contentOverride: 'Only for the sky.' }],
    });
    const { data } = await mint(approvalId);
    // The page reads files and accounts from the read models.
    await world.settled();
    const before = await world.head();
    const answers = await Promise.all([page(data.token), page(data.token), page(data.token)]);
    const html = (await answers[0]?.text()) ?? '';
    assert.equal(answers[0]?.status, 200);
    assert.equal(await world.head(), before, 'a GET stored events');
    assert.match(html, /Line one\n&lt;script&gt;alert\(1\)&lt;\/script&gt;/);
    assert.match(html, /Only for the sky\./);
    assert.match(html, /Acme &lt;b&gt;&amp; Söhne&lt;\/b&gt;/);
    assert.match(html, /<img src="[^"]+" alt="A &quot;quoted&quot; cat"/);
    assert.doesNotMatch(html, /<script/);
    const csp = answers[0]?.headers.get('content-security-policy') ?? '';
    assert.match(csp, /default-src 'none'/);
    assert.match(csp, /img-src http/);
    const [, address = ''] = /<img src="([^"]+)"/.exec(html) ?? [];
    assert.ok(csp.includes(new URL(address.replaceAll('&amp;', '&')).origin));
    for (const name of ['referrer-policy', 'x-frame-options']) assert.ok(answers[0]?.headers.get(name), name);
  });

  t(
    'a picture that browsers do not show is a link until a network has its own; one that was deleted is named',
    async () => {
      const home = testTwinIdOf(world.workspaceId);
      const probe = { contentType: 'image/heic', image: null };
      const needs = [{ platform: 'x', use: 'feed' }] as const;
      const asset = await readyAsset(world.store, home, 'image', { name: 'phone.heic', probe, needs });
      await world.settled();
      const { approvalId } = await submit({ mediaIds: [asset.id] });
      const { data } = await mint(approvalId);
      const shown = async () => {
        await world.settled();
        return (await page(data.token)).text();
      };
      const append = async (revision: number, type: string, more: object) => {
        const events = [{ type, data: more }];
        await world.store.append(
          `media-${asset.id}`,
          revision,
          events,
          contextOf(world.operator, home),
          `media-${asset.id}`,
        );
      };
      const original = await shown();
      assert.match(original, /<a href="[^"]+">phone\.heic<\/a>/);
      assert.doesNotMatch(original, /<img/);
      const file = { key: `${home}/${asset.id}/x.jpg`, contentType: 'image/jpeg', bytes: 9, sha256: 'a'.repeat(64) };
      const seen = { width: 640, height: 480, durationMs: null };
      await append(5, 'MediaRenditionReady', { ...needs[0], rendition: 'b'.repeat(32), ...file, ...seen });
      assert.match(
        await shown(),
        /<img src="[^"]+" alt="Picture without alt text: phone\.heic" width="640" height="480">/,
      );
      await append(6, 'MediaDeleted', {});
      const deleted = await shown();
      assert.match(deleted, /File: phone\.heic/);
      assert.doesNotMatch(deleted, /<img|<a /);
    },
  );

  t('a time that has passed is not promised', async () => {
    const { approvalId } = await submit();
    const { data } = await mint(approvalId);
    assert.match(await (await page(data.token)).text(), /goes out <time/);
    world.clock.shiftMs = 2 * 86_400_000;
    const late = await (await page(data.token)).text();
    world.clock.shiftMs = 0;
    assert.match(late, /was due <time/);
    assert.doesNotMatch(late, /goes out <time/);
  });

  t('the page shows when the targets go out now, and none that was canceled since', async () => {
    const { postId, approvalId } = await submit();
    const { data } = await mint(approvalId);
    const { targets } = (await tester.get(`/posts/${postId}`)).data as unknown as {
      targets: readonly { id: string; platform: string }[];
    };
    const idOn = (platform: string) => targets.find((one) => one.platform === platform)?.id;
    const scheduledAt = new Date(Date.now() + 9 * 86_400_000).toISOString();
    const moved = await tester.post(`/post-targets/${idOn('x')}/reschedule`, { scheduledAt });
    assert.equal(moved.status, 200, moved.text);
    assert.equal((await tester.post(`/post-targets/${idOn('bluesky')}/cancel`, {})).status, 200);
    await world.settled();
    const html = await (await page(data.token)).text();
    assert.deepEqual(
      [...html.matchAll(/goes out <time datetime="([^"]+)"/g)].map(([, at]) => at),
      [scheduledAt],
    );
    assert.doesNotMatch(html, /badge bluesky/);
    assert.match(html, /Account on Bluesky<\/strong><br><small>The decision is not about it\./);
  });

  t(
    'what no guest sends: other methods, a huge name, a name with html, headers of a page that is nobody else’s',
    async () => {
      const { approvalId } = await submit();
      const { data } = await mint(approvalId);
      const url = `${world.origin()}/approval/${data.token}`;
      const before = await world.head();
      for (const method of ['HEAD', 'OPTIONS', 'PUT', 'DELETE', 'PATCH']) {
        const { status } = await fetch(url, { method });
        assert.ok(method === 'HEAD' ? status === 200 : status < 500, `${method} ${status}`);
      }
      const huge = await send(data.token, { decision: 'approve', name: 'x'.repeat(10_000_000), comment: '' }).catch(
        () => null,
      );
      assert.ok(huge === null || huge.status === 413, String(huge?.status));
      const multipart = new FormData();
      multipart.set('decision', 'approve');
      multipart.set('name', 'Zoë');
      assert.equal((await fetch(url, { method: 'POST', body: multipart, redirect: 'manual' })).status, 415);
      assert.equal(await world.head(), before, 'something was decided');
      const opened = await page(data.token);
      assert.match(opened.headers.get('cache-control') ?? '', /no-store/);
      assert.equal(opened.headers.get('referrer-policy'), 'no-referrer');
      const marked = await send(data.token, { decision: 'reject', name: '"><script>alert(1)</script>', comment: '' });
      assert.equal(marked.status, 422);
      assert.doesNotMatch(await marked.text(), /<script/);
    },
  );

  t('a guest approves; the page then shows it, and nobody decides again', async () => {
    const { postId, approvalId } = await submit();
    const { data } = await mint(approvalId);
    const sent = await send(data.token, { decision: 'approve', name: 'Zoë Guest', comment: '' });
    assert.deepEqual([sent.status, sent.headers.get('location')], [303, `/approval/${data.token}`]);
    const approval = await approvalOf(approvalId);
    assert.deepEqual(
      [approval.status, approval.decidedBy, approval.guestName, approval.comment],
      ['approved', { type: 'guest', id: data.linkId }, 'Zoë Guest', null],
    );
    assert.equal(await statusOf(postId), 'scheduled');
    const after = await (await page(data.token)).text();
    assert.match(after, /is approved/);
    assert.doesNotMatch(after, /<form/);
    const again = await send(data.token, { decision: 'reject', name: 'Zoë', comment: 'No.' });
    assert.equal(again.status, 409);
    assert.match(await again.text(), /role="alert">The request for approval is approved\./);
    const { rows } = await world.pool.query("select encode(data, 'escape') as data from es.events where stream = $1", [
      `approval-${approvalId}`,
    ]);
    assert.ok(
      rows.every((row) => !/Zo/.test(row.data)),
      'an event holds the name in clear',
    );
  });

  t('the form is checked, and what the guest typed stays', async () => {
    const { postId, approvalId } = await submit();
    const { data } = await mint(approvalId);
    const before = await world.head();
    for (const [fields, words] of [
      [{ decision: 'approve', name: ' ' }, /Give your name/],
      [{ decision: 'approve', name: 'x'.repeat(101) }, /Give your name/],
      [{ decision: 'reject', name: 'Zoë', comment: ' ' }, /Say in a comment/],
      [{ decision: 'nonsense', name: 'Zoë' }, /Choose one/],
      [{ decision: 'reject', name: 'Zoë', comment: 'x'.repeat(2_001) }, /at most 2000/],
    ] as const) {
      const answer = await send(data.token, { comment: '', ...fields });
      assert.equal(answer.status, 422);
      const html = await answer.text();
      assert.match(html, words);
      assert.match(html, /<form/);
      if (fields.name === 'Zoë') assert.match(html, /value="Zoë"/);
    }
    const plain = await fetch(`${world.origin()}/approval/${data.token}`, { method: 'POST', body: 'x' });
    assert.equal(plain.status, 415);
    assert.equal(await world.head(), before);
    const asked = await send(data.token, { decision: 'request_changes', name: 'Zoë', comment: 'ä'.repeat(2_000) });
    assert.equal(asked.status, 303);
    assert.equal(await statusOf(postId), 'draft');
    assert.equal((await approvalOf(approvalId)).comment, 'ä'.repeat(2_000));
  });

  t('two guests and a manager decide at once: one decides', async () => {
    const { approvalId } = await submit();
    const [first, second] = [await mint(approvalId), await mint(approvalId)];
    const fields = { decision: 'approve', name: 'Zoë', comment: '' };
    const [a, b, c] = await Promise.all([
      send(first.data.token, fields),
      send(second.data.token, fields),
      tester.post(`/approvals/${approvalId}/reject`, { comment: 'No.' }),
    ]);
    const won = [a.status === 303, b.status === 303, c.status === 200];
    assert.equal(won.filter(Boolean).length, 1, `${a.status} ${b.status} ${c.status}`);
  });

  t('one and the same 404 for a token that is unknown, forged, expired, revoked or of an archived client', async () => {
    const { approvalId } = await submit();
    const { data } = await mint(approvalId, { expiresInHours: 1 });
    const missing = await page('x'.repeat(86));
    const words = await missing.text();
    assert.equal(missing.status, 404);
    const token = String(data.token);
    const forged = `${token.slice(0, -2)}${token.at(-2) === 'A' ? 'B' : 'A'}${token.at(-1)}`;
    const other = linkToken(world.secrets, 'approval', [approvalId, randomUUID()], world.secrets.current);
    const wrongKind = linkToken(world.secrets, 'invite', [approvalId, String(data.linkId)], world.secrets.current);
    for (const one of [forged, other, wrongKind, token.slice(1), `${token}A`]) {
      const answer = await page(one);
      assert.deepEqual([answer.status, await answer.text()], [404, words], one);
      assert.equal((await send(one, { decision: 'approve', name: 'Zoë' })).status, 404);
    }
    assert.equal((await page(token)).status, 200);
    world.clock.shiftMs = 3_600_001;
    assert.deepEqual([(await page(token)).status, await (await page(token)).text()], [404, words]);
    assert.equal((await send(token, { decision: 'approve', name: 'Zoë' })).status, 404);
    world.clock.shiftMs = 0;
    const revoked = await tester.delete(`/approvals/${approvalId}/links/${data.linkId}`);
    assert.deepEqual([revoked.status, revoked.data.isRevoked, revoked.data.url], [200, true, null], revoked.text);
    assert.equal((await page(token)).status, 404);
    assert.deepEqual((await tester.delete(`/approvals/${approvalId}/links/${data.linkId}`)).data, revoked.data);
    refused(await tester.delete(`/approvals/${approvalId}/links/${randomUUID()}`), 404, 'not_found');
    assert.equal((await approvalOf(approvalId)).status, 'pending');
  });

  t('a post of several clients, and a request that is decided, get no link', async () => {
    const other = await composer(world, ['x']);
    const accountIds = [own.accounts.x, other.accounts.x];
    const both = await submit({ targets: { mode: 'accounts', accountIds } });
    refused(await tester.post(`/approvals/${both.approvalId}/links`, {}), 422, 'validation_failed');
    const { approvalId } = await submit();
    await tester.post(`/approvals/${approvalId}/reject`, { comment: 'No.' });
    refused(await tester.post(`/approvals/${approvalId}/links`, {}), 409, 'approval_not_pending');
    refused(await tester.post(`/approvals/${randomUUID()}/links`, {}), 404, 'not_found');
  });

  t('a post that was revised: the page of the former request says so', async () => {
    const { postId, approvalId } = await submit({ content: 'Before.' });
    const { data } = await mint(approvalId);
    await tester.post(`/posts/${postId}/revise`, { content: 'After.' });
    const html = await (await page(data.token)).text();
    assert.match(html, /was changed or canceled/);
    assert.doesNotMatch(html, /Before\.|<form/);
    assert.equal((await send(data.token, { decision: 'approve', name: 'Zoë' })).status, 409);
  });
});
