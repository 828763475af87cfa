/** Every call of `calls.txt` has the names that Meta's own library has for that edge. Where pip has no answer, the test says so. */
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { orMissing } from '#test/support/missing.ts';
import { callsIn, everywhere, strangers, type Terms, type WrittenCall } from '#test/support/networks/meta-calls.ts';
import { metaNames } from '#test/support/networks/meta-names.ts';
import { suite } from '#test/support/suite.ts';

const opened = await orMissing(metaNames(['page', 'pagepost', 'post', 'advideo']).then((names) => ({ names })));

const terms: Terms = {
  owners: { page: ['Page'], post: ['PagePost', 'Post'], video: ['AdVideo'] },
  // "Page Video Reels", "Resumable Upload" name them, and the library sends them by itself.
  known: { 'Page POST /videos': ['upload_phase', 'upload_session_id', 'start_offset', 'file_size'] },
  // The files of a form are none of the library's parameters.
  everywhere: [...everywhere, 'source', 'video_file_chunk', 'thumb'],
};

suite('names of the calls to facebook', (t) => {
  if ('missing' in opened) {
    t.skip('stand in Meta’s own library', opened.missing);
    return;
  }
  const calls = callsIn(readFileSync(new URL('calls.txt', import.meta.url), 'utf8'));

  t('stand in Meta’s own library, each at its edge', () => {
    assert.ok(calls.length > 50, `only ${calls.length} calls were read`);
    assert.deepEqual([...new Set(strangers(opened.names, terms, calls))], []);
  });

  t('another name is found', () => {
    const wrong: WrittenCall = {
      ...{ method: 'POST', owner: 'page', edge: '/feed', names: ['massage'], fields: [], metrics: [] },
    };
    assert.deepEqual(strangers(opened.names, terms, [wrong]), ['page POST /feed: massage']);
    assert.deepEqual(strangers(opened.names, terms, [{ ...wrong, edge: '/fead', names: [] }]), [
      'page POST /fead is no edge',
    ]);
  });
});
