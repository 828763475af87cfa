import assert from 'node:assert/strict';
import { isDiedAtIn, points, pointsElsewhere, pointsInSource } from '#test/faults/points.ts';
import { suite } from '#test/support/suite.ts';

suite('fault points', (t) => {
  t('for every fault point in the source some test kills a process there', () => {
    const here = points.map((one) => one.name);
    assert.deepEqual([...new Set([...here, ...Object.keys(pointsElsewhere)])].sort(), pointsInSource());
    for (const [name, file] of Object.entries(pointsElsewhere)) assert.ok(isDiedAtIn(name, file), `${name}: ${file}`);
  });
});
