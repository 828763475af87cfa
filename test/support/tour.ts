import assert from 'node:assert/strict';
import { platforms } from '#schemas/common.ts';

/** What a tour shows that has passed, whether it ends the process or not. */
export const assertPassed = (output: string): void => {
  const table = output.split('\n').slice(output.split('\n').findIndex((line) => line.startsWith('platform ')) + 1);
  const rows = table.slice(0, platforms.length).map((line) => line.split(/\s{2,}/));
  assert.deepEqual(new Set(rows.map(([platform]) => platform)), new Set(platforms));
  for (const [platform, status, at, attempts, permalink] of rows) {
    assert.equal(status, 'published', platform);
    assert.ok(!Number.isNaN(Date.parse(at ?? '')), at);
    assert.equal(attempts, platform === 'linkedin' ? '2' : '1', platform);
    assert.match(permalink ?? '', /^https:\/\//);
  }
  for (const event of [
    /linkedin rate_limited/,
    /facebook published .*found by asking/,
    /pinterest is due later/,
    /x first comment posted .*“Book a table.*” as \d{19}/,
    /post previewed .*accepted; tiktok would fail with tiktok_privacy_level_required; nothing is written/,
    /post previewed .*accepted; 10 targets would go out; nothing is written/,
    /3 posts in one call .*2 created, 1 rejected: \/content (X|Bluesky) takes at most/,
    /4 targets in one call .*4 canceled/,
  ]) {
    assert.match(output, event);
  }
  assert.match(output, /youtube handed_to_platform .*publishes it at \d{4}-/);
  assert.match(output, /taken back .*undo pending/);
  assert.match(output, /youtube canceled .*undo done/);
  assert.match(output, /a post to approve .*pending_approval; 2 targets awaiting_approval/);
  assert.match(output, /approved .*by Mia from Northwind through the link: “Lovely\.”; 2 targets pending/);
  assert.match(output, /campaign shifted .*2 targets by a day: from \d{4}-/);
  const received = output
    .split('\n')
    .slice(output.split('\n').findIndex((line) => line.startsWith('event at the webhook ')) + 1);
  const events = received.slice(0, received.indexOf('')).map((line) => line.split(/\s{2,}/));
  assert.ok(
    events.every(([, , , , , signatures]) => signatures === 'both valid'),
    output,
  );
  const ids = events.map(([, , , id]) => id);
  assert.equal(new Set(ids).size, ids.length, 'an id for each event');
  const times = (type: string) => events.filter(([one]) => one === type).length;
  for (const type of ['post.created', 'post.scheduled', 'post.published', 'target.first_comment_posted']) {
    assert.equal(times(type), 1, type);
  }
  for (const type of ['target.scheduled', 'target.published']) assert.equal(times(type), platforms.length, type);
  const lines = output.split('\n');
  const overview = lines.slice(lines.findIndex((line) => line.startsWith('overview ')) + 1);
  const figures = overview.slice(0, platforms.length + 1).map((line) => line.split(/\s{2,}/));
  assert.deepEqual(new Set(figures.map(([name]) => name)), new Set([...platforms, 'workspace']));
  for (const [name = '', impressions = '', , likes = ''] of figures) {
    // Networks that do not tell how often a post was shown are not said to have shown it 0 times.
    const reported = !['bluesky', 'telegram', 'tiktok', 'youtube'].includes(name);
    assert.match(impressions, reported ? /^[\d,]+$/ : /^–$/, name);
    assert.match(likes, /^[\d,]+$/, name);
  }
  const sum = (values: readonly string[]): number =>
    values.reduce((all, value) => all + (value === '–' ? 0 : Number(value.replaceAll(',', ''))), 0);
  const [total] = figures.filter(([name]) => name === 'workspace');
  assert.equal(
    sum(figures.flatMap(([name, , , likes = '']) => (name === 'workspace' ? [] : [likes]))),
    sum([total?.[3] ?? '']),
  );
  assert.match(output, /impressions a day, .*: {2}·?[▁▂▃▄▅▆▇█]{7}/);
};
