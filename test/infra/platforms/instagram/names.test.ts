/** Every call of `calls.txt` has the names that Meta's own library has for that edge. Where pip has no answer, the test says so. */
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { orMissing } from '#test/support/missing.ts';
import { callsIn, everywhere, strangers, type Terms, type WrittenCall } from '#test/support/networks/meta-calls.ts';
import { metaNames } from '#test/support/networks/meta-names.ts';
import { suite } from '#test/support/suite.ts';

const files = ['iguser', 'igmedia', 'iguserforigonlyapi', 'igmediaforigonlyapi', 'shadowigmediabuilder'];
const opened = await orMissing(metaNames([...files, 'instagraminsightsresult']).then((names) => ({ names })));

/** The library lists metrics of media; those of accounts stand in "Instagram User Insights". */
const ofMedia = { of: 'InstagramInsightsResult Metric', known: [] };
const ofAccount = {
  of: 'InstagramInsightsResult Metric',
  known: ['accounts_engaged', 'profile_links_taps', 'profile_views', 'follower_demographics'],
};
const [ig, fb] = ['graph.instagram.com', 'graph.facebook.com'];

const terms: Terms = {
  owners: {
    [`${ig} account`]: ['IGUserForIGOnlyAPI'],
    [`${ig} media`]: ['IGMediaForIGOnlyAPI'],
    [`${ig} container`]: ['ShadowIGMediaBuilder'],
    [`${fb} account`]: ['IGUser'],
    [`${fb} media`]: ['IGMedia'],
    [`${fb} container`]: ['ShadowIGMediaBuilder'],
  },
  known: {
    // "Content Publishing" writes it so for both hosts; the library has `/mediapublish` for this one.
    'IGUserForIGOnlyAPI POST /media_publish': ['creation_id'],
  },
  metrics: {
    [`${ig} account`]: ofAccount,
    [`${fb} account`]: ofAccount,
    [`${ig} media`]: ofMedia,
    [`${fb} media`]: ofMedia,
  },
  everywhere,
};

suite('names of the calls to instagram', (t) => {
  if ('missing' in opened) {
    t.skip('stand in Meta’s own library', opened.missing);
    return;
  }
  const calls = callsIn(readFileSync(new URL('calls.txt', import.meta.url), 'utf8'));

  t('stand in Meta’s own library, each at its edge', () => {
    assert.ok(calls.length > 100, `only ${calls.length} calls were read`);
    assert.deepEqual([...new Set(strangers(opened.names, terms, calls))], []);
    const owners = new Set(calls.map(({ owner }) => owner));
    assert.deepEqual([...owners].toSorted(), Object.keys(terms.owners).toSorted(), 'each is called');
  });

  t('another name is found: of a parameter, an edge, a field and a metric', () => {
    const right = callsIn('  POST graph.instagram.com/v27.0/<account>/media\n    image_url=a\n    caption=b\n');
    assert.deepEqual(strangers(opened.names, terms, right), []);
    const [one] = right;
    assert.ok(one !== undefined && one.names.length === 2);
    const wrong = (over: Partial<WrittenCall>) => strangers(opened.names, terms, [{ ...one, ...over }]);
    assert.deepEqual(wrong({ names: ['captain'] }), [`${ig} account POST /media: captain`]);
    assert.deepEqual(wrong({ edge: '/medea', names: [] }), [`${ig} account POST /medea is no edge`]);
    const read = { method: 'GET', owner: `${fb} media`, names: [] };
    assert.deepEqual(wrong({ ...read, edge: '/', fields: ['permalnk'] }), [`${fb} media GET /: permalnk`]);
    assert.deepEqual(wrong({ ...read, edge: '/insights', metrics: ['veiws'] }), [`${fb} media GET /insights: veiws`]);
    // A label of a partnership is a matter of Facebook Login alone.
    assert.deepEqual(wrong({ names: ['is_paid_partnership'] }), [`${ig} account POST /media: is_paid_partnership`]);
  });
});
