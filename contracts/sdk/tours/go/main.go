// The main job through a client by openapi-generator's `go`: a webhook, a client, four accounts, a photo, a post with
// its targets, figures, events, and an error.
package main

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"strings"
	"time"

	postline "postline.example/sdk/postline"
)

func check(holds bool, what string) {
	if !holds {
		fmt.Fprintln(os.Stderr, "not so:", what)
		os.Exit(1)
	}
	fmt.Println("ok ", what)
}

// must is the result of a call, unless the server refused it.
func must[Result any](result *Result, _ *http.Response, err error) *Result {
	if err != nil {
		if problem, ok := problemIn(err); ok {
			err = fmt.Errorf("%d %s: %s", problem.Status, problem.Code, problem.GetDetail())
		}
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	return result
}

func problemIn(err error) (postline.Problem, bool) {
	var answered *postline.GenericOpenAPIError
	if !errors.As(err, &answered) {
		return postline.Problem{}, false
	}
	problem, ok := answered.Model().(postline.Problem)
	return problem, ok
}

func eventually(what string, look func() bool) {
	for until := time.Now().Add(time.Minute); time.Now().Before(until); time.Sleep(150 * time.Millisecond) {
		if look() {
			return
		}
	}
	check(false, what)
}

// key of a POST that creates something: a repeat with the same key creates nothing.
func key() string { return strings.ToLower(rand.Text()) }

func send(method string, address string, headers map[string]string, body []byte) *http.Response {
	request, err := http.NewRequest(method, address, bytes.NewReader(body))
	if err != nil {
		panic(err)
	}
	for name, value := range headers {
		request.Header.Set(name, value)
	}
	browser := http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	response, err := browser.Do(request)
	if err != nil {
		panic(err)
	}
	return response
}

func main() {
	configuration := postline.NewConfiguration()
	configuration.Servers = postline.ServerConfigurations{{URL: os.Getenv("POSTLINE_URL")}}
	api := postline.NewAPIClient(configuration)
	ctx := context.WithValue(context.Background(), postline.ContextAccessToken, os.Getenv("POSTLINE_KEY"))
	receiver := os.Getenv("POSTLINE_RECEIVER")
	platforms := []string{"x", "bluesky", "instagram", "pinterest"}

	wanted := postline.NewWebhookCreate(receiver, []string{"post.published", "target.published"})
	webhook := must(api.WebhooksAPI.RegisterWebhook(ctx).IdempotencyKey(key()).WebhookCreate(*wanted).Execute()).Data
	check(webhook.GetSecret() != "", "a webhook shows its secret once")

	once := key()
	body := postline.NewClientCreate("Northwind "+once[:8], "brand")
	body.SetTimezone("Europe/Berlin")
	client := must(api.ClientsAPI.CreateClient(ctx).IdempotencyKey(once).ClientCreate(*body).Execute()).Data
	check(client.Name == body.Name, "a client is created")
	again, response, err := api.ClientsAPI.CreateClient(ctx).IdempotencyKey(once).ClientCreate(*body).Execute()
	check(must(again, response, err).Data.Id == client.Id, "the same key answers the same client")
	check(response.Header.Get("Idempotent-Replayed") == "true", "and says that it is a replay")

	wish := postline.NewConnectInviteCreate(platforms)
	wish.SetExpiresInHours(1)
	invite := must(api.ClientsAPI.CreateConnectInvite(ctx, client.Id).
		IdempotencyKey(key()).ConnectInviteCreate(*wish).Execute()).Data
	for _, platform := range platforms {
		// What the invite page sends when a brand connects its account.
		form := url.Values{"platform": {platform}, "username": {"northwind"}, "timezone": {""}}
		headers := map[string]string{"Content-Type": "application/x-www-form-urlencoded"}
		answer := send(http.MethodPost, *invite.Url.Get(), headers, []byte(form.Encode()))
		check(answer.StatusCode == http.StatusSeeOther, "the invite page connects "+platform)
	}

	connected := map[string]bool{}
	eventually("four accounts on two pages", func() bool {
		page := must(api.AccountsAPI.ListAccounts(ctx).ClientId(client.Id).Limit(2).Execute())
		for {
			for _, account := range page.Data {
				connected[account.Id] = true
			}
			cursor := page.Page.NextCursor.Get()
			if cursor == nil {
				return len(connected) == len(platforms)
			}
			page = must(api.AccountsAPI.ListAccounts(ctx).ClientId(client.Id).Limit(2).Cursor(*cursor).Execute())
		}
	})
	check(len(connected) == len(platforms), "a cursor leads through all accounts")

	photo, err := os.ReadFile(os.Getenv("POSTLINE_PHOTO"))
	if err != nil {
		panic(err)
	}
	offer := postline.NewMediaPresign("coffee.jpg", "image/jpeg", int64(len(photo)))
	offer.SetClientId(client.Id)
	upload := must(api.MediaAPI.PresignMedia(ctx).IdempotencyKey(key()).MediaPresign(*offer).Execute()).Data
	put := send(http.MethodPut, *upload.Url.Get(), upload.Headers, photo)
	check(put.StatusCode < 300, "the presigned URL takes the file")
	register := postline.NewMediaRegister(upload.AssetId)
	register.SetClientId(client.Id)
	register.SetAltText("An espresso")
	must(api.MediaAPI.RegisterMedia(ctx).IdempotencyKey(key()).MediaRegister(*register).Execute())
	eventually("the photo is publishable", func() bool {
		return must(api.MediaAPI.GetMedia(ctx, upload.AssetId).Execute()).Data.Publishable
	})

	link := "https://northwind.example/winter"
	group := postline.NewTargetSelectionInput("group")
	group.SetClientId(client.Id)
	in := func(when time.Time) postline.ScheduleInput {
		schedule := postline.NewScheduleInput("at")
		schedule.SetScheduledAt(when)
		return *schedule
	}
	onX := postline.NewVariantInput("x")
	onX.SetContentOverride("Winter menu: " + link)
	card := postline.NewNetworkOverrides()
	card.SetLink(link)
	onBluesky := postline.NewVariantInput("bluesky")
	onBluesky.SetOverrides(*card)
	pin := postline.NewNetworkOverrides()
	pin.SetBoardId("918273645")
	pin.SetTitle("Winter menu")
	pin.SetLink(link)
	onPinterest := postline.NewVariantInput("pinterest")
	onPinterest.SetOverrides(*pin)
	compose := postline.NewPostCreate(client.Id, *group, in(time.Now().Add(time.Hour)))
	compose.SetContent("Winter menu is here.")
	compose.SetMediaIds([]string{upload.AssetId})
	compose.SetMediaAltTexts(map[string]string{upload.AssetId: "An espresso with a spoon"})
	compose.SetVariants([]postline.VariantInput{*onX, *onBluesky, *onPinterest})
	post := must(api.PostsAPI.CreatePost(ctx).IdempotencyKey(key()).PostCreate(*compose).Execute()).Data
	check(post.Status == "scheduled" && len(post.Targets) == len(platforms), "a post has a target for each account")
	for _, variant := range post.Variants {
		if variant.Platform == "pinterest" {
			check(variant.Overrides["boardId"] == "918273645", "its variants keep their overrides")
		}
	}

	two := must(api.PostTargetsAPI.ListPostTargets(ctx).PostId(post.Id).Platform([]string{"x", "pinterest"}).Execute()).Data
	check(len(two) == 2 && two[0].Failure.Get() == nil, "targets are listed by post and network")
	for _, target := range post.Targets {
		now := postline.PostTargetReschedule{}
		now.SetScheduledAt(time.Now())
		moved := must(api.PostTargetsAPI.ReschedulePostTarget(ctx, target.Id).PostTargetReschedule(now).Execute()).Data
		check(time.Until(moved.ScheduledAt) < time.Second, "the target on "+moved.Platform+" is moved to now")
	}
	eventually("the post is published", func() bool {
		post = must(api.PostsAPI.GetPost(ctx, post.Id).Execute()).Data
		return post.Status == "published"
	})
	for _, target := range post.Targets {
		check(target.Status == "published" && target.Permalink.Get() != nil, "published: "+*target.Permalink.Get())
	}

	today := time.Now().UTC().Format(time.DateOnly)
	overview := must(api.AnalyticsAPI.GetAnalyticsOverview(ctx).From(today).To(today).ClientId(client.Id).Execute())
	check(overview.Data.Object == "workspace_analytics", "the overview has figures")
	account := post.Targets[0].AccountId
	figures := must(api.AnalyticsAPI.GetAccountAnalytics(ctx, account).From(today).To(today).Execute())
	check(figures.Data.SocialAccountId == account, "and so has an account")

	var event postline.PostPublishedEvent
	eventually("post.published arrives", func() bool {
		var texts []string
		if err := json.NewDecoder(send(http.MethodGet, receiver, nil, nil).Body).Decode(&texts); err != nil {
			panic(err)
		}
		for _, text := range texts {
			told := postline.PostPublishedEvent{}
			if !strings.Contains(text, `"post.published"`) || json.Unmarshal([]byte(text), &told) != nil {
				continue
			}
			if told.Data.PostId == post.Id {
				event = told
			}
		}
		return event.Id != ""
	})
	check(int(event.Data.Counts.Published) == len(platforms), "the webhook received post.published")
	eventually("the delivery is recorded", func() bool {
		rows := must(api.WebhooksAPI.ListWebhookDeliveries(ctx, webhook.Id).
			EventType("post.published").Execute()).Data
		for _, row := range rows {
			if row.EventId == event.Id && row.Status == "delivered" {
				return true
			}
		}
		return false
	})
	check(true, "and the delivery is recorded")

	late := postline.NewPostCreate(client.Id, *group, in(time.Date(2020, 1, 1, 0, 0, 0, 0, time.UTC)))
	_, _, err = api.PostsAPI.CreatePost(ctx).IdempotencyKey(key()).PostCreate(*late).Execute()
	refused, _ := problemIn(err)
	check(refused.Code == "schedule_in_past" && refused.Status == 422, "a refusal has a code to branch on")

	must(api.WebhooksAPI.DeleteWebhook(ctx, webhook.Id).Execute())
	_, _, err = api.WebhooksAPI.GetWebhook(ctx, webhook.Id).Execute()
	gone, _ := problemIn(err)
	check(gone.Code == "not_found", "the webhook is deleted")
	fmt.Println("the tour is over")
}
