// Forwards TCP over KCP, as a peer to compare carriers with: the library and the multiplexer of
// kcptun, with the settings that kcptun has by default, its mode fast2, aes-128 and no compression.
// Both sides have the same key in their code: it is for measurements only.
package main

import (
	"fmt"
	"io"
	"net"
	"os"
	"time"

	"github.com/xtaci/kcp-go/v5"
	"github.com/xtaci/smux"
)

const (
	usage        = "usage: kcp-bulk server LISTEN TARGET | kcp-bulk client LISTEN SERVER"
	key          = "longwire kcp key"
	dataShards   = 10
	parityShards = 3
	mtuBytes     = 1350
	socketBytes  = 4 << 20
	streamBytes  = 2 << 20
	frameBytes   = 8192
	// As kcptun's: the side that has the long answers may have more in flight.
	clientSendPackets, clientReceivePackets = 128, 512
	serverSendPackets, serverReceivePackets = 1024, 1024
	connectTimeout                          = 10 * time.Second
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "kcp-bulk:", err)
		os.Exit(1)
	}
}

func run(words []string) error {
	if len(words) != 3 {
		return fmt.Errorf("%s", usage)
	}
	block, err := kcp.NewAESBlockCrypt([]byte(key))
	if err != nil {
		return err
	}
	switch words[0] {
	case "server":
		return serve(words[1], words[2], block)
	case "client":
		return connect(words[1], words[2], block)
	}
	return fmt.Errorf("%s", usage)
}

func serve(listen, target string, block kcp.BlockCrypt) error {
	listener, err := kcp.ListenWithOptions(listen, block, dataShards, parityShards)
	if err != nil {
		return err
	}
	if err := buffers(listener); err != nil {
		return err
	}
	for {
		session, err := listener.AcceptKCP()
		if err != nil {
			return err
		}
		tune(session, serverSendPackets, serverReceivePackets)
		mux, err := smux.Server(session, muxConfig())
		if err != nil {
			return err
		}
		go accept(mux, target)
	}
}

// accept connects each stream to the target.
func accept(mux *smux.Session, target string) {
	defer mux.Close()
	for {
		stream, err := mux.AcceptStream()
		if err != nil {
			return
		}
		go func() {
			defer stream.Close()
			if tcp, err := net.DialTimeout("tcp", target, connectTimeout); err == nil {
				forward(tcp, stream)
			}
		}()
	}
}

func connect(listen, server string, block kcp.BlockCrypt) error {
	listener, err := net.Listen("tcp", listen)
	if err != nil {
		return err
	}
	var mux *smux.Session
	for {
		tcp, err := listener.Accept()
		if err != nil {
			return err
		}
		if mux == nil || mux.IsClosed() {
			if mux, err = dial(server, block); err != nil {
				return err
			}
		}
		stream, err := mux.OpenStream()
		if err != nil {
			tcp.Close()
			continue
		}
		go forward(tcp, stream)
	}
}

func dial(server string, block kcp.BlockCrypt) (*smux.Session, error) {
	session, err := kcp.DialWithOptions(server, block, dataShards, parityShards)
	if err != nil {
		return nil, err
	}
	if err := buffers(session); err != nil {
		return nil, err
	}
	tune(session, clientSendPackets, clientReceivePackets)
	return smux.Client(session, muxConfig())
}

// tune sets mode fast2.
func tune(session *kcp.UDPSession, sendPackets, receivePackets int) {
	session.SetStreamMode(true)
	session.SetWriteDelay(false)
	session.SetNoDelay(1, 20, 2, 1)
	session.SetWindowSize(sendPackets, receivePackets)
	session.SetMtu(mtuBytes)
	session.SetACKNoDelay(false)
}

func buffers(socket interface {
	SetReadBuffer(int) error
	SetWriteBuffer(int) error
}) error {
	if err := socket.SetReadBuffer(socketBytes); err != nil {
		return err
	}
	return socket.SetWriteBuffer(socketBytes)
}

func muxConfig() *smux.Config {
	config := smux.DefaultConfig()
	config.Version = 2
	config.MaxReceiveBuffer = socketBytes
	config.MaxStreamBuffer = streamBytes
	config.MaxFrameSize = frameBytes
	config.KeepAliveInterval = 10 * time.Second
	config.KeepAliveTimeout = 30 * time.Second
	return config
}

// forward copies both ways until one has ended.
func forward(tcp net.Conn, stream *smux.Stream) {
	ended := make(chan struct{}, 2)
	one := func(to io.Writer, from io.Reader) {
		_, _ = io.Copy(to, from)
		ended <- struct{}{}
	}
	go one(tcp, stream)
	go one(stream, tcp)
	<-ended
	tcp.Close()
	stream.Close()
}
