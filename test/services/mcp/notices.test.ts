import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { overrideRules } from '#domain/platforms/index.ts';
import { instantOf } from '#domain/zones.ts';
import { platforms } from '#schemas/common.ts';
import { type Composer, composer, tomorrow } from '#test/support/composing.ts';
import type { World } from '#test/support/http.ts';
import { type Called, connect, type Mcp, mcpWorld, worked } from '#test/support/mcp.ts';
import { suite } from '#test/support/suite.ts';

/** What an agent is told of settings that do nothing, and of zones. */

interface Notice {
  readonly code: string;
  readonly message: string;
  readonly platform: string | null;
}

suite('what an agent is told', (t) => {
  let world: World;
  let composed: Composer;
  let mcp: Mcp;
  t.before(async () => {
    world = await mcpWorld();
    composed = await composer(world, ['x', 'bluesky'], {
      name: 'Acme',
      timezone: 'Europe/Berlin',
      zones: { bluesky: 'Asia/Tokyo' },
    });
    mcp = await connect(world, world.testKey.secret);
  });
  t.after(async () => {
    await mcp?.close();
    await world?.close();
  });

  const warned = (answer: Called): readonly string[] => {
    const { warnings = [] } = worked(answer) as { warnings?: readonly Notice[] };
    for (const { code, message } of warnings) assert.ok(answer.text.includes(message), `${code}: ${answer.text}`);
    return warnings.map(({ code }) => code).toSorted();
  };
  const base = () => ({ clientId: composed.clientId, content: `Word ${randomUUID()}`, platforms: ['x'] });

  t('every tool that takes settings warns of one that no network knows, and names the nearest', async () => {
    const variants = [{ platform: 'x', settings: { reply_settings: 'following' } }];
    const preview = await mcp.call('preview_post', { ...base(), variants });
    assert.deepEqual(warned(preview), ['unknown_override']);
    assert.match(preview.text, /reply_settings.*`replySettings`/);
    const draft = await mcp.call('compose_post', { ...base(), variants });
    assert.deepEqual(warned(draft), ['unknown_override']);
    const { postId } = worked(draft);
    const updated = await mcp.call('revise_post', { postId, content: `Other ${randomUUID()}` });
    assert.deepEqual(warned(updated), ['unknown_override']);
    const published = await mcp.call('publish_draft', { postId, action: 'schedule', scheduledAt: tomorrow() });
    assert.deepEqual(warned(published), ['unknown_override']);
    const revised = await mcp.call('revise_post', { postId, variants });
    assert.deepEqual(warned(revised), ['unknown_override']);
    const known = [{ platform: 'x', settings: { replySettings: 'following' } }];
    assert.deepEqual(warned(await mcp.call('compose_post', { ...base(), variants: known })), []);
    const idempotencyKey = randomUUID();
    const args = { ...base(), variants, action: 'schedule', scheduledAt: tomorrow(), idempotencyKey };
    assert.deepEqual(warned(await mcp.call('compose_post', args)), ['unknown_override']);
    await world.settled();
    assert.deepEqual(warned(await mcp.call('compose_post', args)), ['unknown_override'], 'a repeat is no duplicate');
  });

  t('post_status tells of a content that waits for an approval beside the released one', async () => {
    const { data: made } = await world.tester.post('/posts', composed.body({ content: 'Released.' }));
    const memberId = await world.memberOf(world.workspaceId, 'creator');
    const { caller: creator } = await world.keyOf(world.workspaceId, memberId, { mode: 'test' });
    await world.settled();
    const plain = worked(await mcp.call('post_status', { postId: made.id })) as { pendingRevision: unknown };
    assert.equal(plain.pendingRevision, null);
    const revised = await creator.post(`/posts/${made.id}/revise`, { content: 'Asked for.' });
    assert.equal(revised.status, 200, revised.text);
    await world.settled();
    const answer = await mcp.call('post_status', { postId: made.id });
    const { content, pendingRevision } = worked(answer) as { content: string; pendingRevision: unknown };
    assert.deepEqual(
      [content, pendingRevision],
      ['Released.', { approvalId: revised.data.approvalId, content: 'Asked for.' }],
    );
    assert.match(answer.text, /Released\..*\n.*waits for the approval .*"Asked for\."/);
  });

  t('network_settings lists each setting of a network, its values and what it does', async () => {
    for (const platform of platforms) {
      const { settings } = worked(await mcp.call('network_settings', { platforms: [platform] })) as {
        settings: { key: string; about: string; values: string[] | null; required: boolean }[];
      };
      const rules = overrideRules(platform);
      assert.deepEqual(settings.map(({ key }) => key).toSorted(), Object.keys(rules).toSorted());
      for (const { key, about, values } of settings) {
        const rule = rules[key];
        assert.equal(about, rule?.about);
        assert.deepEqual(values, rule?.type === 'enum' ? rule.values : null);
      }
    }
    const { text } = await mcp.call('network_settings', { platforms: ['tiktok'] });
    assert.match(text, /privacyLevel.*required.*SELF_ONLY/);
  });

  t('a wall-clock time with a zone is read in that zone, whatever the zone of client and account', async () => {
    const scheduledLocal = '2027-01-05T09:00';
    const timezone = 'America/New_York';
    const instant = instantOf(scheduledLocal, timezone);
    const due = (answer: Called) =>
      (worked(answer).targets as readonly { readonly scheduledAt: string }[]).map((one) => one.scheduledAt);
    const args = { clientId: composed.clientId, scheduledLocal, timezone };
    const made = await mcp.call('compose_post', { ...args, content: `Word ${randomUUID()}`, action: 'schedule' });
    assert.deepEqual([due(made), warned(made)], [[instant, instant], []], made.text);
    assert.match(made.text, /2027-01-05T09:00 in America\/New_York is 2027-01-05T14:00:00\.000Z/);
    const draft = worked(await mcp.call('compose_post', { ...args, content: `Word ${randomUUID()}` }));
    assert.deepEqual(due({ ...made, data: { targets: draft.wouldGoTo } } as Called), [instant, instant]);
    const later = { scheduledLocal: '2027-01-06T09:00', timezone };
    const updated = await mcp.call('revise_post', { postId: draft.postId, ...later });
    assert.deepEqual(warned(updated), []);
    const skipped = { scheduledLocal: '2027-03-14T02:30', timezone };
    const moved = await mcp.call('revise_post', { postId: draft.postId, ...skipped });
    assert.match(moved.text, /America\/New_York skip 2027-03-14T02:30: it counts as 2027-03-14T07:30:00\.000Z/);
    const out = await mcp.call('publish_draft', { postId: draft.postId, action: 'schedule', ...later });
    assert.deepEqual(due(out), [instantOf(later.scheduledLocal, timezone), instantOf(later.scheduledLocal, timezone)]);
    // Without a zone each account has its own.
    const own = await mcp.call('compose_post', {
      ...{ clientId: composed.clientId, content: `Word ${randomUUID()}`, scheduledLocal, action: 'schedule' },
    });
    assert.deepEqual(due(own).toSorted(), ['2027-01-05T00:00:00.000Z', '2027-01-05T08:00:00.000Z']);
    for (const wrong of [{ timezone: 'New York' }, { scheduledLocal: '2027-02-31T09:00' }]) {
      const refused = await mcp.call('compose_post', { ...args, content: 'x', ...wrong });
      assert.deepEqual([refused.isError, refused.code], [true, 'validation_failed'], refused.text);
    }
  });

  t('REST names both instants where another zone than the one that was sent counts', async () => {
    const schedule = { type: 'at', scheduledLocal: '2027-01-05T09:00' };
    const of = async (more: Readonly<Record<string, unknown>>) => {
      const content = `Word ${randomUUID()}`;
      const { body, text } = await world.tester.post('/posts', composed.body({ content, schedule, ...more }));
      const { warnings = [] } = body.meta as unknown as { readonly warnings?: readonly Notice[] };
      assert.ok(
        warnings.every(({ code }) => code === 'timezone_not_used'),
        text,
      );
      return warnings.map(({ message }) => message).toSorted();
    };
    const [tokyo = '', berlin = '', ...more] = await of({ timezone: 'America/New_York' });
    assert.deepEqual(more, []);
    assert.match(tokyo, /Asia\/Tokyo.*2027-01-05T00:00:00\.000Z.*America\/New_York.*2027-01-05T14:00:00\.000Z/);
    assert.match(berlin, /Europe\/Berlin.*2027-01-05T08:00:00\.000Z.*2027-01-05T14:00:00\.000Z/);
    assert.deepEqual(await of({}), [], 'a zone that nobody named is not lost');
    assert.equal((await of({ timezone: 'UTC' })).length, 2, 'UTC was named here');
    assert.equal((await of({ timezone: 'Europe/Paris' })).length, 1, 'Paris has the time of Berlin');
  });

  t('find_clients and find_accounts say the zone, whoami the moment, the zone and what may be done', async () => {
    assert.match((await mcp.call('find_clients', { search: 'acme' })).text, /"Acme".*Europe\/Berlin/);
    const { text } = await mcp.call('find_accounts', { clientId: composed.clientId });
    assert.match(text, /bluesky.*Asia\/Tokyo/);
    assert.match(text, /x "acme".*zone of its client/);
    const answer = await mcp.call('whoami');
    const { mode, role, timezone, now, quota } = worked(answer);
    assert.deepEqual([mode, role, timezone], ['sandbox', 'owner', 'Europe/Berlin']);
    assert.ok(Math.abs(Date.parse(String(now)) - Date.now()) < 60_000);
    assert.deepEqual(Object.keys(quota as object).toSorted(), ['limit', 'remaining', 'resetsAt', 'used']);
    assert.match(answer.text, /sandbox.*owner/);
    assert.match(answer.text, /Europe\/Berlin/);
  });
});
