import { Type } from 'typebox';
import { Uuid } from '#schemas/common.ts';
import { said } from '#schemas/published.ts';
import { workspaceEvents } from '#schemas/workspace.ts';
import { example, noClient, publicEvent } from './common.ts';

/** Events of the workspace itself. Its sandbox twin has the same events of its own. */

const { name, timezone } = workspaceEvents.WorkspaceProfileChanged.properties;

export const workspacePublic = {
  'workspace.updated': publicEvent(
    'An operator changed the name or the zone of the workspace.',
    Type.Object({
      workspaceId: said(Uuid, 'Id of the workspace, or of its sandbox twin.'),
      ...noClient,
      name: said(name, 'Its name from now on.'),
      timezone: said(timezone, 'IANA zone in which the days of its figures begin, from now on.', {
        examples: ['Europe/Berlin'],
      }),
    }),
    { workspaceId: example.workspaceId, clientId: null, name: 'Studio North', timezone: 'Europe/Berlin' },
  ),
};
