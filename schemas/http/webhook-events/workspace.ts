import { Type } from 'typebox';
import { Nullable, Uuid } from '#schemas/common.ts';
import { said } from '#schemas/published.ts';
import { workspaceEvents } from '#schemas/workspace.ts';
import { example, noClient, publicEvent } from './common.ts';

/** Events of the workspace itself. Its sandbox twin has the same events of its own. */

const ids = { workspaceId: said(Uuid, 'Id of the workspace, or of its sandbox twin.'), ...noClient };
const exampleIds = { workspaceId: example.workspaceId, clientId: null };

const { name, timezone } = workspaceEvents.WorkspaceProfileChanged.properties;

export const workspacePublic = {
  'workspace.updated': publicEvent(
    'An operator changed the name or the zone of the workspace.',
    Type.Object({
      ...ids,
      name: said(name, 'Its name from now on.'),
      timezone: said(timezone, 'IANA zone in which the days of its figures begin, from now on.', {
        examples: ['Europe/Berlin'],
      }),
    }),
    { ...exampleIds, name: 'Studio North', timezone: 'Europe/Berlin' },
  ),
  'quota.changed': publicEvent(
    'An operator set how many targets the workspace may publish in one month.',
    Type.Object({
      ...ids,
      limit: said(
        Nullable(Type.Integer({ minimum: 0 })),
        'Targets that may be due in one month of its zone, from now on; null: as many as it likes.',
        { examples: [500] },
      ),
    }),
    { ...exampleIds, limit: 500 },
  ),
};
