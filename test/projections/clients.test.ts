import { clients } from '#projections/models/clients.ts';
import { everyEventIsProjected, given, ids, instant, on } from '#test/support/projecting.ts';
import { readModelsPool } from '#test/support/read-models.ts';
import { clientFields } from '#test/support/samples.ts';
import { suite } from '#test/support/suite.ts';

const pool = await readModelsPool();

suite('read models: clients', (t) => {
  t('clients: written, changed, archived, erased', async () => {
    const { id } = ids('id');
    const client = on('client', id);
    await given(
      client('ClientCreated', clientFields),
      client('ClientUpdated', { name: 'Acme & Co', timezone: null, rules: {}, type: 'influencer' }),
      client('ClientUpdated', { approvalRequired: true, defaultPostMode: 'draft', brandVoice: { tone: 'dry' } }),
      client('ClientNameClaimLapsed', { name: 'other' }),
      client('ClientArchived', {}),
    )
      .project(pool, clients)
      .sees([
        {
          id,
          revision: 4,
          name: 'Acme & Co',
          type: 'influencer',
          timezone: null,
          rules: {},
          brand_voice: { tone: 'dry' },
          approval_required: true,
          default_post_mode: 'draft',
          archived_at: instant(4),
          erased: false,
          account_count: 0,
        },
      ]);
  });

  // The erasure has a test of its own: it needs two streams on two partitions.
  everyEventIsProjected(t, 'client', ['client/ClientErased']);
});
