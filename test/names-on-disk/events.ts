/** Event types by stream kind, each with its version and its members; shape.ts says how these are written. */

/** Shapes that are long or shared, by a name that stands in this file alone. */
export const sharedShapes: Readonly<Record<string, string>> = {
  Platform: 'x|instagram|tiktok|youtube|facebook|linkedin|threads|pinterest|bluesky|telegram',
  Role: 'owner|manager|creator|viewer',
  Scope:
    'agency.read|clients.read|clients.manage|accounts.read|accounts.connect|posts.read|posts.compose|analytics.read|reports.read|reports.manage|besttimes.read|media.read|media.manage|approvals.read|approvals.decide|campaigns.read|campaigns.manage|webhooks.read|webhooks.manage|webhooks.delete|events.read',
  MediaUse: 'feed|carousel|reel|story|cover',
  MediaKind: 'image|video|gif|document',
  Schedule: '{type:now|at|range scheduledAt:null scheduledLocal:null from:null to:null spreadMinutes:null}',
  TargetSelection: '{mode:group|selection|accounts clientId:null accountIds:[]|null platforms:[Platform]|null}',
  Variant: '{platform:Platform contentOverride:null mediaIdsOverride:[]|null overrides:{*:}}',
  PostBody:
    '{content mediaIds:[] targetSelection:TargetSelection variants:[Variant] schedule:Schedule scheduleMode:managed|native timezone aiDisclosure requestApproval campaignId:null thread:{segments:[{content mediaIds:[]}]}|null mediaAltTexts:{*:}|null coverMediaId:null coverFrameMs:null externalRef?}',
  PlannedTarget:
    '{targetId accountId clientId platform:Platform dueAt scheduledLocal:null timezone jitterSeconds scheduleMode:managed|native scheduleModeReason:null approvalLate?:fail}',
  TargetTime: '{dueAt scheduledLocal:null timezone jitterSeconds scheduleMode:managed|native scheduleModeReason:null}',
  Segment: '{index of}',
  Failure:
    '{category:reauth_required|rate_limited|invalid_content|permission|media|transient|platform_down|duplicate|unknown code message platformCode:null platformMessage:null retryable actor:user|platform|service mediaId:null}',
  MediaFailure: '{code message}',
  PlannedRendition:
    '{id spec:{kind:video mode:encode|remux width height fit:scale|pad fps:null videoKbps audio:{kbps sampleRate channels}|null sound?:encode range?:hdr rounds? maxBytes:null}|{kind:image format:jpeg|png|webp|gif width height fit:scale|pad quality maxBytes:null}|{kind:frame format:jpeg width height fit:scale|pad atMs quality maxBytes:null}}',
  Probe:
    '{kind:MediaKind contentType bytes width:null height:null durationMs:null frames:null image:{format alpha srgb upright located}|null video:{container codec profile:null pixelFormat:null rotation squarePixels fps:null constantRate interlaced hdr bitrate:null indexFirst editList located stream?}|null audio:{codec profile:null channels sampleRate bitrate:null stream?}|null digitalSourceType:null}',
  PostFigures:
    '{impressions?:null reach?:null likes?:null comments?:null shares?:null saves?:null clicks?:null permalink?:null reactionsByType?:{like?:null love?:null wow?:null haha?:null sad?:null angry?:null}|null clicksByType?:{*:}|null profileActivity?:{*:}|null navigation?:{forward?:null tap_back?:null exit?:null next_story?:null}|null follows?:null profileVisits?:null linkClicks?:null totalInteractions?:null reposts?:null quotes?:null videoViews?:null videoCompletions?:null skipRate?:null watchTimeMinutes?:null avgViewDurationSeconds?:null avgViewPercentage?:null subscribersGained?:null subscribersLost?:null audienceRetention?:[{position ratio}]|null trafficSources?:{*:}|null audienceBreakdown?:{*:{*:}}|null}',
  AccountFigures:
    '{followerCount?:null profileViews?:null accountsEngaged?:null profileLinkTaps?:null videoViews?:null videoWatchTimeMinutes?:null contentPlays?:null}',
  ReportDefinition:
    '{name kind:workspace|client|account filters:{clientId:null socialAccountId:null platform:Platform|null} window:last_7_days|last_30_days|last_90_days|last_week|last_month formats:[csv|json|pdf] schedule:{every:day|week|month weekday:null dayOfMonth:null hour}|null bom?}',
};

export const events: Readonly<Record<string, Readonly<Record<string, string>>>> = {
  workspace: {
    WorkspaceCreated: '1: name timezone mode:live|test twinOf:null',
    WorkspaceProfileChanged: '1: name timezone',
    MemberAdded: '1: memberId name role:Role',
    MemberRoleChanged: '1: memberId role:Role',
    MemberRemoved: '1: memberId',
    CadenceSet: '1: platform:Platform|null minIntervalMinutes:null perDay:null',
    NetworkVersionEndReported: '1: platform:Platform version endsAt:null stage:ends_in_90_days|ends_in_30_days|ended',
    PostingQuotaSet: '1: limit:null',
    SandboxClockMoved: '1: aheadMs',
    MemberIdentified: '1: memberId personId',
  },
  apikey: {
    ApiKeyCreated: '1: memberId name hash prefix scopes:[Scope] mode:live|test expiresAt clientIds:[]|null',
    ApiKeyRotated: '1: hash prefix previousHash previousUntil',
    ApiKeyRevoked: '1:',
  },
  teaminvite: {
    TeamInviteCreated: '1: inviteId memberId email:personal name:personal role:Role expiresAt keyVersion',
    TeamInviteAccepted: '1: personId',
    TeamInviteRevoked: '1:',
  },
  person: {
    PersonRegistered: '1: personId email:personal name:personal',
    PasswordSet: '1: by:joined|changed|reset',
    EmailProven: '1: by:link|invitation|operator',
    PasskeyAdded: '1: passkeyId',
    PasskeyRemoved: '1: passkeyId',
    SecondFactorEnabled: '1:',
    SecondFactorDisabled: '1:',
    RecoveryCodesReplaced: '1:',
    RecoveryCodeUsed: '1:',
    PersonErased: '1:',
  },
  personemail: {
    EmailClaimed: '1: personId',
    EmailReleased: '1: personId',
  },
  session: {
    SessionStarted: '1: personId by:password|passkey|recovery_code|link|joined expiresAt',
    SessionRevoked: '1: reason:signed_out|revoked|password_set|erased',
  },
  grant: {
    GrantGiven:
      '1: clientId clientName personId memberId mode:live|test scopes:[agency.read|clients.read|accounts.read|posts.read|analytics.read|reports.read|besttimes.read|media.read|posts.compose|media.manage|approvals.read|approvals.decide|clients.manage|accounts.connect|reports.manage|campaigns.read|campaigns.manage] resource expiresAt',
    GrantRevoked: '1: by:person|client|reuse|member_removed|expired|operator',
  },
  client: {
    ClientCreated:
      '1: name type:influencer|brand defaultPostMode:now|schedule|draft|approval timezone:null approvalRequired rules:{*:} brandVoice:{*:}',
    ClientUpdated:
      '1: name? type?:influencer|brand defaultPostMode?:now|schedule|draft|approval timezone?:null approvalRequired? rules?:{*:} brandVoice?:{*:}',
    ClientArchived: '1:',
    ClientNameClaimLapsed: '1: name',
    ClientErased: '1:',
  },
  clientname: {
    NameClaimed: '1: clientId name claimedAt',
    NameReleased: '1: clientId',
  },
  invite: {
    ConnectInviteCreated: '1: clientId platforms:[Platform] expiresAt keyVersion recipientEmail:personal maxAccounts?',
    ConnectInviteUsed: '1: accountId platform:Platform',
    ConnectInviteRevoked: '1: reason:null',
  },
  account: {
    AccountConnected:
      '1: clientId platform:Platform externalId username:personal displayName:personal avatarUrl:null scopes:[] expiresAt:null timezone:null network:live|sandbox inviteId:null',
    AccountReauthorized:
      '1: clientId username:personal displayName:personal avatarUrl:null scopes:[] expiresAt:null timezone:null inviteId:null',
    AccountReauthRequired: '1: reason',
    AccountDisconnected: '1: reason',
    AccountLimitsObserved: '1: clientId windows:[{name seconds limit used resetsAt:null}]',
    AccountProfileChanged: '1: clientId username:personal displayName:personal avatarUrl:null',
  },
  post: {
    PostDrafted: '1: clientId createdBy:{type id} body:PostBody',
    DraftReplaced: '1: body:PostBody',
    PostDiscarded: '1:',
    PostScheduled:
      '1: clientId createdBy:{type id} body:PostBody plan:{number targets:[PlannedTarget]} held?:true recycledFrom?:{postId occurrence day}',
    PostSubmittedForApproval:
      '1: approvalId request hash submittedBy:{type:member|apikey|service|guest|admin id} targetIds:[]',
    PostReleased: '1: approvalId hash decidedBy:{type:member|apikey|service|guest|admin id} comment:null',
    PostReturnedToDraft: '1: approvalId decidedBy:{type:member|apikey|service|guest|admin id} comment:null',
    PostTargetsChanged:
      '1: change:{kind:cancel reason:client_archived|account_disconnected|post_canceled|approval_rejected|copy_replaced} targetIds:[]',
    PostRevised: '1: body:PostBody changed:[] targetIds:[] times:[TargetTime]|null held?:true',
    PostTargetsSkipped: '1: intentRevision targetIds:[] reason',
    PostTargetSettled: '1: targetId targetRevision outcome:published|failed|canceled publishedAt:null',
    PostCampaignChanged: '1: campaignId:null previousCampaignId:null',
    PostRecycleSet:
      '1: enabled everyDays times:null until:null setBy:{type:member|apikey|service|guest|admin id} needsApproval',
    PostRecyclePlanned: '1: day dueAt',
    PostRecycled: '1: occurrence newPostId day scheduledAt',
    PostRecycleFailed: '1: day code message',
    PostRecycleCleared: '1: reason:requested|times|until|client_archived|account_disconnected|failures',
    PostTargetReopened: '1: targetId targetRevision',
    PostExternalRefClaimLapsed: '1: externalRef',
    PostAbandoned: '1:',
    PostPublished: '1: publishedAt',
    PostPartiallyPublished: '1: publishedAt',
    PostFailed: '1:',
    PostCanceled: '1: reason:targets_canceled|client_archived|approval_rejected|account_disconnected|copy_replaced',
  },
  approval: {
    ApprovalRequested:
      '1: postId clientId request postRevision contentHash requestedBy:{type:member|apikey|service|guest|admin id} scheduledAt',
    ApprovalLinkCreated: '1: linkId expiresAt keyVersion',
    ApprovalLinkRevoked: '1: linkId',
    ApprovalGuestNamed: '1: clientId linkId name:personal',
    ApprovalApproved: '1: decidedBy:{type:member|apikey|service|guest|admin id} comment:null',
    ApprovalRejected: '1: decidedBy:{type:member|apikey|service|guest|admin id} comment',
    ApprovalChangesRequested: '1: decidedBy:{type:member|apikey|service|guest|admin id} comment',
    ApprovalWithdrawn: '1: reason:post_changed|post_canceled',
  },
  target: {
    TargetScheduled:
      '1: targetId accountId clientId platform:Platform dueAt scheduledLocal:null timezone jitterSeconds scheduleMode:managed|native scheduleModeReason:null approvalLate?:fail postId postRevision',
    TargetHeld: '1: postRevision',
    TargetReleased: '1: postRevision dueAt',
    TargetApprovalLapsed: '1: dueAt',
    TargetRescheduled: '1: dueAt scheduledLocal:null jitterSeconds',
    TargetRevised:
      '1: postRevision dueAt scheduledLocal:null timezone jitterSeconds scheduleMode:managed|native scheduleModeReason:null',
    TargetCanceled:
      '1: reason:requested|client_archived|approval_rejected|post_canceled|account_disconnected|changes_requested|copy_replaced postRevision:null',
    TargetPublishStarted: '1: attempt takeover',
    TargetPublishCheckpointed: '1: attempt takeover step data deadline:null segment?:Segment',
    TargetSegmentPublished: '1: attempt takeover segment:Segment externalId permalink:null publishedAt',
    TargetPublishTakenOver: '1: attempt takeover',
    TargetHandedToPlatform: '1: attempt takeover nativeId dueAt',
    TargetUndoRequested:
      '1: then:cancel|reschedule|revise reason:requested|client_archived|approval_rejected|post_canceled|account_disconnected|changes_requested|copy_replaced|null postRevision:null dueAt:null scheduledLocal:null jitterSeconds:null revised?:{timezone scheduleMode:managed|native scheduleModeReason:null}',
    TargetUndoFailed: '1: then:cancel|reschedule|revise failure:Failure',
    TargetNativeTimeChanged: '1: attempt takeover nativeId dueAt scheduledLocal:null jitterSeconds',
    TargetNativeRevised:
      '1: attempt takeover nativeId postRevision dueAt scheduledLocal:null timezone jitterSeconds scheduleMode:managed|native scheduleModeReason:null',
    TargetScheduleModeChanged: '1: scheduleMode:managed|native scheduleModeReason:null',
    TargetPublished: '1: attempt takeover externalId permalink:null publishedAt',
    TargetAcceptedByPlatform: '1: attempt takeover handle askAt until',
    TargetFailed: '1: attempt takeover failure:Failure',
    TargetRateLimited: '1: attempt takeover retryAt failure:Failure',
    TargetPublishDeferred: '1: attempt takeover retryAt failure:Failure',
    TargetOutcomeUnknown: '1: attempt takeover failure:Failure reconcileAt retryAt? reason?:restored',
    TargetAbsenceObserved: '1: attempt takeover observedAt',
    TargetOutcomeSettled:
      '1: outcome:published|failed|absent externalId:null permalink:null publishedAt:null failure:Failure|null by:reconcile|admin|policy retryAt?',
    TargetPlaceLapsed: '1:',
    TargetOverdue: '1: dueAt deferredSince?',
    TargetRequeued: '1: by:schedule|retry|revise dueAt',
    TargetFirstCommentScheduled: '1: try dueAt refusal:{code message platformCode:null}|null',
    TargetFirstCommentStarted: '1: try deadline',
    TargetFirstCommentPosted: '1: externalId',
    TargetFirstCommentFailed: '1: code message platformCode:null',
    TargetAfterStepScheduled: '1: step:cover try dueAt refusal:{code message platformCode:null}|null',
    TargetAfterStepStarted: '1: step:cover try deadline',
    TargetAfterStepCompleted: '1: step:cover',
    TargetAfterStepFailed: '1: step:cover|privacy code message platformCode:null',
    TargetRemovedOnPlatform: '1: observedAt',
  },
  media: {
    MediaUploadOffered: '1: fileName clientId:null folder:null contentType bytes key expiresAt',
    MediaRegistered: '1: name clientId:null folder:null altText:null platforms:[Platform]',
    MediaImportRequested: '1: url source? name clientId:null folder:null altText:null platforms:[Platform]',
    MediaStored: '1: key contentType bytes sha256 kind:MediaKind',
    MediaProbed: '1: probe:Probe',
    MediaRenditionsRequested: '1: needs:[{platform:Platform use:MediaUse}] for:{kind:post|target id}',
    MediaRenditionsPlanned:
      '1: initial needs:[{platform:Platform use:MediaUse rendition:null}] renditions:[PlannedRendition]',
    MediaRenditionReady:
      '1: platform:Platform use:MediaUse rendition key contentType bytes sha256 width:null height:null durationMs:null',
    MediaRenditionFailed: '1: platform:Platform use:MediaUse rendition:null failure:MediaFailure',
    MediaTranscoded: '1: poster:{key contentType bytes sha256 width height}|null',
    MediaFailed: '1: failure:MediaFailure',
    MediaQuarantined: '1: failure:MediaFailure',
    MediaDeleted: '1:',
    MediaFilesRemoved: '1:',
  },
  webhook: {
    WebhookRegistered: '1: url events:[] description:null clientIds:[]|null keyVersion',
    WebhookUpdated: '1: url? events?:[] description?:null clientIds?:[]|null',
    WebhookSecretRotated: '1: generation keyVersion previousExpiresAt',
    WebhookDisabled: '1: by:user|service reason:requested|failing|gone|receiver',
    WebhookEnabled: '1:',
    WebhookDeleted: '1:',
    WebhookTestRequested: '1: eventType',
    WebhookResendRequested: '1: deliveryId eventTime',
    WebhookReplayRequested: '1: replayId from to types:[]|null',
    WebhookReplayCanceled: '1: replayId',
  },
  externalref: {
    ExternalRefClaimed: '1: clientId externalRef postId claimedAt',
    ExternalRefReleased: '1: postId',
  },
  targetcalls: {
    TargetNetworkCallObserved:
      '1: targetId accountId clientId attempt method host path headers:{*:} bodySha256:null outcome:answered|unsent|silent status:null reason:null answer:personal calls startedAt endedAt',
  },
  quota: {
    QuotaReserved: '1: month postId targetIds:[] n awaits:{stream:post|target revision}|null',
    QuotaReleased: '1: postId targetIds:[]',
  },
  targetmetrics: {
    TargetMetricsObserved:
      '1: accountId clientId platform:Platform observedAt day source raw rawHash? targetId postId externalId publishedAt figures:PostFigures platformRemovedAt:null',
  },
  accountmetrics: {
    AccountMetricsObserved:
      '1: accountId clientId platform:Platform observedAt day source raw rawHash? figures:AccountFigures figuresDay:null demographics?:{*:{*:}}|null',
  },
  refresh: {
    AnalyticsRefreshRequested: '1: accountIds:[]',
    AnalyticsRefreshed: '1: accountIds:[] failedAccountIds:[]',
  },
  campaign: {
    CampaignCreated: '1: clientId:null name color:null startsOn:null endsOn:null description:null',
    CampaignUpdated: '1: name? color?:null startsOn?:null endsOn?:null description?:null',
    CampaignShifted: '1: minutes:null days:null targetIds:[] skipped',
    CampaignShiftCompleted:
      '1: shiftRevision minutes:null days:null shifted skipped passedOver:[{reason targetIds:[]}]',
    CampaignDeleted: '1:',
  },
  report: {
    ReportDefined: '1: definition:ReportDefinition',
    ReportRunRequested: '1: runId from to by:schedule|request formats:[csv|json|pdf]',
    ReportRunCompleted:
      '1: runId asOf:null exports:[{format:csv|json|pdf key contentType bytes sha256}] completeness:{complete provisionalDays:[]}',
    ReportRunFailed: '1: runId code message',
    ReportRemoved: '1:',
  },
  request: {
    RequestAccepted: '1: operation fingerprint decided',
    RequestCompleted: '1:',
  },
};
