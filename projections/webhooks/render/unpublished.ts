import type { ClientNameEvent } from '#schemas/client.ts';
import type { ExternalRefEvent } from '#schemas/externalref.ts';
import type { GrantEvent } from '#schemas/grant.ts';
import type { AccountMetricsEvent, TargetMetricsEvent } from '#schemas/insights.ts';
import type { PersonEmailEvent, PersonEvent, SessionEvent } from '#schemas/person.ts';
import type { QuotaEvent } from '#schemas/quota.ts';
import type { RequestEvent } from '#schemas/request.ts';
import type { TargetCallsEvent } from '#schemas/targetcalls.ts';
import type { TeamInviteEvent } from '#schemas/teaminvite.ts';
import type { Unpublished } from '../../engine/publisher.ts';

/** Stream kinds that publish nothing. */

const ofNames = 'a step of claiming a name; events of the client show who has it';
export const clientname: Unpublished<ClientNameEvent> = { NameClaimed: ofNames, NameReleased: ofNames };

const ofGrants = 'a matter between a person and an app, which the page of connected apps shows';
export const grant: Unpublished<GrantEvent> = { GrantGiven: ofGrants, GrantRevoked: ofGrants };

const ofPeople = 'a matter of one person, who belongs to no workspace';
export const person: Unpublished<PersonEvent> = {
  ...{ PersonRegistered: ofPeople, PasswordSet: ofPeople, PasskeyAdded: ofPeople, PasskeyRemoved: ofPeople },
  ...{ SecondFactorEnabled: ofPeople, SecondFactorDisabled: ofPeople, RecoveryCodesReplaced: ofPeople },
  ...{ RecoveryCodeUsed: ofPeople, PersonErased: ofPeople, EmailProven: ofPeople },
};
export const personemail: Unpublished<PersonEmailEvent> = { EmailClaimed: ofPeople, EmailReleased: ofPeople };
export const session: Unpublished<SessionEvent> = { SessionStarted: ofPeople, SessionRevoked: ofPeople };

const ofInvites = 'an offer; team.member_added tells that a person took it';
export const teaminvite: Unpublished<TeamInviteEvent> = {
  ...{ TeamInviteCreated: ofInvites, TeamInviteAccepted: ofInvites, TeamInviteRevoked: ofInvites },
};

const ofRefs = 'a step of claiming a reference; events of the post that has it show it';
export const externalref: Unpublished<ExternalRefEvent> = { ExternalRefClaimed: ofRefs, ExternalRefReleased: ofRefs };

const ofQuotas = 'a step of scheduling targets; events of the targets show when each is due';
export const quota: Unpublished<QuotaEvent> = { QuotaReserved: ofQuotas, QuotaReleased: ofQuotas };

const ofRequests = 'a step of carrying out a call; its effects are events of other streams';
export const request: Unpublished<RequestEvent> = { RequestAccepted: ofRequests, RequestCompleted: ofRequests };

const ofFigures = 'one for each observation, which is too many; analytics.refreshed reports that figures are new';
export const targetmetrics: Unpublished<TargetMetricsEvent> = { TargetMetricsObserved: ofFigures };
export const accountmetrics: Unpublished<AccountMetricsEvent> = { AccountMetricsObserved: ofFigures };

const ofCalls = 'how a network was called, for auditors; events of the target tell what became of the post';
export const targetcalls: Unpublished<TargetCallsEvent> = { TargetNetworkCallObserved: ofCalls };
