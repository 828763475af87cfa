/** Nobody stops anybody: a tenant's reads and due posts while another one, and strangers, do their worst. */
import { ok } from 'node:assert/strict';
import { Attackers } from '#test/bench/neighbour/attacks.ts';
import { Victim } from '#test/bench/neighbour/victim.ts';
import { percentile } from '#test/bench/row.ts';
import { startStandalone } from '#test/bench/standalone.ts';
import { slowness } from '#test/support/patience.ts';
import { suite } from '#test/support/suite.ts';

const most = { getMs: 500, lateMs: 2_000 };

suite('neighbouring workspaces', { drawn: true, costs: 11, serial: true, timeoutMs: 120_000 }, (t) => {
  t('a workspace reads and publishes while another one attacks', async () => {
    await using stack = new AsyncDisposableStack();
    const world = await startStandalone({
      ...{ keys: 20, neighbour: true, forgetful: true },
      env: { PRIVATE_TARGETS: '*' },
    });
    stack.defer(() => world.stop());
    const attackers = await Attackers.start({ port: world.port, ...world.neighbour, drafts: 60, pace: 0.3 });
    stack.defer(() => attackers.stop());
    const victim = await Victim.open(world, stack);
    const posts = await victim.schedule(4, 3_000, 1_000);
    const before = slowness();
    attackers.begin();
    const [{ gets, webhooks }, late] = await Promise.all([victim.notice(7_000), victim.lateness(posts)]);
    const tally = await attackers.rest();
    const slow = Math.max(before, slowness());
    const p99 = percentile(gets, 0.99);
    const latest = Math.max(...late);
    const figures = `${slow.toFixed(1)} times as slow as quiet; GET p99 ${Math.round(p99)} ms, p50 ${Math.round(percentile(gets, 0.5))} ms; webhook p50 ${Math.round(percentile(webhooks, 0.5))} ms, longest ${Math.round(Math.max(...webhooks))} ms; latest ${Math.round(latest)} ms; ${JSON.stringify(tally)}`;
    process.stdout.write(`${figures}\n`);
    // Each attack was one: it was answered, and more than once. At full rate is for the bench: two cores hold the attackers too.
    for (const [name, answers] of Object.entries(tally)) {
      const answered = Object.entries(answers).reduce((sum, [status, count]) => sum + (status === '0' ? 0 : count), 0);
      ok(answered > 2, `${name}: ${figures}`);
    }
    ok(p99 <= most.getMs * slow, figures);
    ok(latest <= most.lateMs * slow, figures);
  });
});
