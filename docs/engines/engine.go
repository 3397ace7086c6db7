// An engine for Assay: runs a command for each test, and shows its output while it runs.
//
//	ASSAY_URL=http://127.0.0.1:8080 ASSAY_TOKEN=... go run engine.go [--once] ./run-test
//
// The command gets the identifier of the test in ASSAY_TEST_CASE, and in ASSAY_FILES a folder with the files of
// its plan, subject and environment, named by their ids. It passes if it exits with 0.
package main

import (
	"bufio"
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

type object = map[string]interface{}

type lease struct {
	Id                   string
	InstanceNumbers      []int
	MaximumDurationInMin float64
	TestCase             struct{ Identifier string }
	Files                []struct{ Id, Name, Sha256 string }
	logged               int // Size of its log.
}

// A lease is lost 60 seconds (ASSAY_LEASE_SECONDS) after the last heartbeat. The test is killed ten seconds before.
const held = 50 * time.Second

var (
	url   = strings.TrimRight(os.Getenv("ASSAY_URL"), "/") + "/api/automation/leases"
	token = os.Getenv("ASSAY_TOKEN")
	// If a heartbeat is not answered, there is time for another one before the lease is lost.
	client = http.Client{Timeout: 20 * time.Second}
)

// call sends a request until it is answered. It returns false if the lease is lost or has ended.
func call(method, path string, body, answer interface{}) bool {
	data, _ := json.Marshal(body)
	if method == "DELETE" {
		data = nil
	}
	for ; ; time.Sleep(2 * time.Second) {
		request, err := http.NewRequest(method, url+path, bytes.NewReader(data))
		if err != nil {
			panic(err)
		}
		request.Header.Set("Authorization", "Bearer "+token)
		request.Header.Set("Content-Type", "application/json")
		response, err := client.Do(request)
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			continue
		}
		var failure struct{ Detail string }
		switch code := response.StatusCode; {
		case code < 300:
			err = json.NewDecoder(response.Body).Decode(answer)
			response.Body.Close()
			if code == 204 || err == nil {
				return true
			}
		case code == 404 || code == 409:
			response.Body.Close()
			return false
		case code < 500 && code != 408 && code != 429:
			json.NewDecoder(response.Body).Decode(&failure)
			panic(fmt.Sprint(response.Status, ": ", failure.Detail))
		default:
			response.Body.Close()
		}
	}
}

// download downloads the files of a lease.
func download(stop context.Context, lease *lease, folder string) error {
	for _, file := range lease.Files {
		request, err := http.NewRequestWithContext(stop, "GET", url+"/"+lease.Id+"/files/"+file.Id, nil)
		if err != nil {
			return err
		}
		request.Header.Set("Authorization", "Bearer "+token)
		response, err := http.DefaultClient.Do(request)
		if err != nil {
			return err
		}
		defer response.Body.Close()
		if response.StatusCode != 200 {
			return fmt.Errorf("%s: %s", file.Name, response.Status)
		}
		copied, err := os.Create(filepath.Join(folder, filepath.Base(file.Id)))
		if err != nil {
			return err
		}
		defer copied.Close()
		digest := sha256.New()
		if _, err := io.Copy(io.MultiWriter(copied, digest), response.Body); err != nil {
			return fmt.Errorf("%s: %w", file.Name, err)
		}
		if hex.EncodeToString(digest.Sum(nil)) != file.Sha256 {
			return fmt.Errorf("%s has arrived damaged", file.Name)
		}
	}
	return nil
}

// failed returns the result of an instance that does not get its files.
func failed(number int, problem error) object {
	step := object{"StepNr": 1, "TestInput": "Get the files of the test", "ActualResult": problem.Error(), "Result": "Error"}
	return object{"InstanceNr": number, "Result": "Error", "Steps": []object{step}}
}

// log appends text to the log of the lease. With its offset, a repeated request appends it once.
func (lease *lease) log(text string) {
	var state struct{ Size int }
	if call("POST", "/"+lease.Id+"/log", object{"Text": text, "Offset": lease.logged}, &state) {
		lease.logged = state.Size
	}
}

// run runs the command for an instance, and returns its result.
func run(stop context.Context, lease *lease, number int, words []string, folder string) object {
	begun := time.Now()
	limit, cancel := context.WithTimeout(stop, time.Duration(lease.MaximumDurationInMin*float64(time.Minute)))
	defer cancel()
	command := exec.Command(words[0], words[1:]...)
	for _, variable := range os.Environ() {
		if !strings.HasPrefix(variable, "ASSAY_TOKEN=") {
			command.Env = append(command.Env, variable)
		}
	}
	command.Env = append(command.Env, "ASSAY_TEST_CASE="+lease.TestCase.Identifier, "ASSAY_FILES="+folder)
	command.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	output, _ := command.StdoutPipe()
	command.Stderr = command.Stdout
	end, result := "", "Error"
	if err := command.Start(); err != nil {
		end = err.Error()
	} else {
		go func() {
			<-limit.Done()
			syscall.Kill(-command.Process.Pid, syscall.SIGKILL)
		}()
		waiting, sent := "", begun
		reader := bufio.NewReaderSize(output, 10_000)
		for piece, err := reader.ReadSlice('\n'); len(piece) > 0; piece, err = reader.ReadSlice('\n') {
			// Results must not have NUL.
			text := strings.ReplaceAll(strings.ToValidUTF8(string(piece), "\uFFFD"), "\x00", "\uFFFD")
			waiting += text
			if time.Since(sent) > time.Second || len(waiting) > 20_000 {
				lease.log(waiting)
				waiting, sent = "", time.Now()
			}
			if end += text; len(end) > 10_000 {
				end = strings.ToValidUTF8(end[len(end)-10_000:], "")
			}
			if err != nil && err != bufio.ErrBufferFull {
				break
			}
		}
		lease.log(waiting)
		err := command.Wait()
		switch {
		case limit.Err() == context.DeadlineExceeded:
			end = "Timed out\n" + end
		case err == nil:
			result = "Passed"
		default:
			result = "Failed"
		}
	}
	step := object{"StepNr": 1, "TestInput": strings.Join(words, " "), "ActualResult": end, "Result": result}
	return object{"InstanceNr": number, "Result": result, "DurationInSec": time.Since(begun).Seconds(),
		"ExecutionLogUri": "live.log", "Steps": []object{step}}
}

// beat renews the lease until it ends, and stops the test if it should not continue, or before the lease is lost.
func beat(stopped context.Context, stop, stopLate context.CancelFunc, lease *lease) {
	last := time.AfterFunc(held, stopLate)
	for stopped.Err() == nil {
		var state struct{ Continue bool }
		// Assay cannot renew the lease before the request is sent.
		following := time.AfterFunc(held, stopLate)
		if !call("POST", "/"+lease.Id+"/heartbeat", object{"WaitInSec": 10}, &state) || !state.Continue {
			stop()
		}
		last.Stop()
		last = following
	}
	last.Stop()
}

func main() {
	words := os.Args[1:]
	once := words[0] == "--once"
	if once {
		words = words[1:]
	}
	group := os.Getenv("ASSAY_TARGET_GROUP")
	for {
		var leases []lease
		call("POST", "", object{"Engine": "engine.go", "TargetGroup": group, "WaitInSec": 10}, &leases)
		if len(leases) == 0 { // A proxy may not wait for work.
			time.Sleep(time.Second)
		}
		for i := range leases {
			lease := &leases[i]
			late, stopLate := context.WithCancel(context.Background())
			stopped, stop := context.WithCancel(late)
			go beat(stopped, stop, stopLate, lease)
			folder, err := os.MkdirTemp("", "assay-")
			if err == nil {
				err = download(stopped, lease, folder)
			}
			for _, number := range lease.InstanceNumbers {
				var result object
				if err != nil {
					result = failed(number, err)
				} else {
					result = run(stopped, lease, number, words, folder)
				}
				if stopped.Err() != nil || !call("POST", "/"+lease.Id+"/instances", []object{result}, &[]object{}) {
					break
				}
			}
			stop()
			os.RemoveAll(folder)
			if late.Err() != nil { // The work returns to the queue.
				call("DELETE", "/"+lease.Id, nil, &object{})
			} else {
				call("POST", "/"+lease.Id+"/complete", object{}, &object{})
			}
			if once {
				return
			}
		}
	}
}
